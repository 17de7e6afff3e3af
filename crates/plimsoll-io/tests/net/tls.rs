//! TLS: the suite once more with it on every network, and whom it refuses.
//!
//! `server.pem` and `stranger.pem` are self-signed certificates of this test for localhost, valid
//! from 2019 to 2119, made by openssl.

use std::rc::Rc;

use plimsoll_io::conformance::network::{Subject, check_all};
use plimsoll_io::{
    Listener, MethodChoice, Network, NetworkFuture, Stream, StreamError, TlsClient, TlsServer,
    read, write_all,
};

use crate::conforming::{real_by, ring, simulated};

const SERVER_PEM: &[u8] = include_bytes!("tls/server.pem");
const SERVER_KEY: &[u8] = include_bytes!("tls/server.key");
const STRANGER_PEM: &[u8] = include_bytes!("tls/stranger.pem");

/// A network with TLS on every stream.
struct Secured {
    below: Rc<dyn Network>,
    client: TlsClient,
    server: TlsServer,
}

struct SecuredListener {
    below: Box<dyn Listener>,
    server: TlsServer,
}

impl Network for Secured {
    fn listen(&self, address: &str) -> NetworkFuture<'static, Box<dyn Listener>> {
        let (below, server) = (self.below.listen(address), self.server.clone());
        Box::pin(async move {
            let below = below.await?;
            Ok(Box::new(SecuredListener { below, server }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: &str) -> NetworkFuture<'static, Box<dyn Stream>> {
        let (below, client) = (self.below.connect(address), self.client.clone());
        Box::pin(async move { client.handshake(below.await?, "localhost").await })
    }
}

impl Listener for SecuredListener {
    fn accept(&self) -> NetworkFuture<'_, Box<dyn Stream>> {
        Box::pin(async move { self.server.handshake(self.below.accept().await?).await })
    }

    fn address(&self) -> &str {
        self.below.address()
    }
}

fn client() -> TlsClient {
    TlsClient::trusting(SERVER_PEM).expect("the certificate is one")
}

fn server() -> TlsServer {
    TlsServer::new(SERVER_PEM, SERVER_KEY).expect("certificate and key belong together")
}

fn secured(subject: Subject) -> Subject {
    let on =
        |below: Rc<dyn Network>| Rc::new(Secured { below, client: client(), server: server() });
    Subject {
        client: on(subject.client),
        impatient: on(subject.impatient),
        server: on(subject.server),
        ..subject
    }
}

#[test]
fn tls_on_the_simulated_network_keeps_the_promises() {
    check_all(|_| secured(simulated()));
}

#[test]
fn tls_on_tcp_on_the_ring_keeps_the_promises() {
    if ring().is_some() {
        check_all(|_| secured(ring().expect("there was one before")));
    }
}

#[test]
fn tls_on_tcp_beside_a_thread_keeps_the_promises() {
    check_all(|_| secured(real_by(MethodChoice::Auto, true)));
}

/// Both sides after a handshake of `client` with the name `name`, against `serve`.
fn handshake<F>(
    client: TlsClient,
    name: &'static str,
    serve: impl FnOnce(Box<dyn Stream>) -> F + 'static,
) -> Result<Box<dyn Stream>, StreamError>
where
    F: Future<Output = ()> + 'static,
{
    let subject = simulated();
    let (near_host, far_host) = (subject.client.clone(), subject.server.clone());
    let handle = subject.executor.handle();
    let story = async move {
        let listener = far_host.listen("server:1").await?;
        let near = near_host.connect("server:1").await?;
        let far = listener.accept().await?;
        handle.spawn(serve(far));
        client.handshake(near, name).await
    };
    subject.executor.run(story).expect("something always happens next")
}

fn refusal(result: Result<Box<dyn Stream>, StreamError>) -> String {
    match result {
        Err(error @ StreamError::Tls { .. }) => error.to_string(),
        Err(error) => panic!("not an error of TLS: {error}"),
        Ok(_) => panic!("the handshake succeeded, and must not have"),
    }
}

async fn serve_tls(far: Box<dyn Stream>) {
    // The client goes away when it does not trust; what the server says then is checked elsewhere.
    let _ = server().handshake(far).await;
}

/// A client that would speak with anybody is worth nothing: signature, name and text are all
/// checked.
#[test]
fn only_the_right_server_is_spoken_with() {
    assert!(handshake(client(), "localhost", serve_tls).is_ok());
    let stranger = TlsClient::trusting(STRANGER_PEM).expect("the certificate is one");
    let refused = refusal(handshake(stranger, "localhost", serve_tls));
    assert!(refused.contains("server:1") && refused.contains("certificate"), "{refused}");
    let misnamed = refusal(handshake(client(), "elsewhere.example", serve_tls));
    assert!(misnamed.contains("elsewhere.example"), "{misnamed}");
    refusal(handshake(client(), "no name at all", serve_tls));
    let no_tls = refusal(handshake(client(), "localhost", |mut far| async move {
        let _ = write_all(&mut far, b"220 mail.example ESMTP\r\n").await;
        let _ = read(&mut far, &mut [0; 1000]).await;
    }));
    assert!(no_tls.contains("server:1"), "{no_tls}");
}

/// What is no certificate or key is refused where it is given, not with the first client.
#[test]
fn unusable_certificates_are_refused_when_they_are_given() {
    for wrong in [&b""[..], b"no certificate", SERVER_KEY] {
        assert!(matches!(TlsClient::trusting(wrong), Err(StreamError::Tls { .. })));
    }
    assert!(matches!(TlsServer::new(SERVER_PEM, SERVER_PEM), Err(StreamError::Tls { .. })));
    assert!(matches!(TlsServer::new(STRANGER_PEM, SERVER_KEY), Err(StreamError::Tls { .. })));
}

/// Whoever cuts the wire must not be able to make a short answer look whole.
#[test]
fn a_stream_that_ends_without_saying_so_was_cut() {
    let subject = simulated();
    let (near_host, far_host) = (subject.client.clone(), subject.server.clone());
    let handle = subject.executor.handle();
    let story = async move {
        let listener = far_host.listen("server:1").await.unwrap();
        let near = near_host.connect("server:1").await.unwrap();
        let far = listener.accept().await.unwrap();
        // A man in the middle: hands on what the server says, and then only the end of the wire.
        let middle_listener = near_host.listen("client:1").await.unwrap();
        let client_end = near_host.connect("client:1").await.unwrap();
        let middle = middle_listener.accept().await.unwrap();
        handle.spawn(async move {
            let mut far = server().handshake(far).await.unwrap();
            write_all(&mut far, b"half of the").await.unwrap();
            let _ = read(&mut far, &mut [0; 10]).await;
        });
        handle.spawn(hand_on(handle.clone(), near, middle));
        let mut secured = client().handshake(client_end, "localhost").await.unwrap();
        let mut buffer = [0; 100];
        assert_eq!(read(&mut secured, &mut buffer).await, Ok(11));
        let cut = read(&mut secured, &mut buffer).await;
        assert_eq!(cut, Err(StreamError::CutShort("client:1".to_owned())));
    };
    subject.executor.run(story).expect("something always happens next");
}

/// Hands bytes on in both directions for a second.
async fn hand_on(handle: plimsoll_io::Handle, near: Box<dyn Stream>, middle: Box<dyn Stream>) {
    let (near, middle) =
        (plimsoll_io::SharedStream::new(near), plimsoll_io::SharedStream::new(middle));
    for (mut from, mut to) in [(near.clone(), middle.clone()), (middle.clone(), near.clone())] {
        let pump = handle.clone();
        handle.spawn(async move {
            let mut buffer = [0; 4096];
            let pumping = async {
                while let Ok(count @ 1..) = read(&mut from, &mut buffer).await {
                    write_all(&mut to, &buffer[..count]).await.unwrap();
                }
            };
            plimsoll_io::within(&pump, plimsoll_io::NANOS_PER_SECOND, pumping).await;
        });
    }
}
