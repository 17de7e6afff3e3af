//! A mail server as a run sees it: its endpoints, its accounts, connections to it, and the ledger
//! of what was sent.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_clients::endpoints::{Endpoints, Open};
use plimsoll_clients::mail::{
    Delivery, DeliveryProtocol, Endpoint, Imap, ImapOptions, MailError, Security, Submission,
};
use plimsoll_io::{Handle, NANOS_PER_SECOND, Nanos, Network, TlsClient, read_text};
use plimsoll_workload::mail::{Corpus, Mail};

use super::ledger::Ledger;
use super::spec::{MailEndpoint, MailInstance, expand};
use crate::RunError;
use crate::context::RunContext;
use crate::spec::{InstanceSpec, distribution_of};

/// Bytes of a file of passwords or certificates.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// Idle connections for delivery that are kept for each endpoint.
const SUBMISSIONS_KEPT: usize = 32;
/// Parts of a message's number.
const SEQUENCE_BITS: u64 = 20;
const ACCOUNT_BITS: u64 = 20;
const NONCE_BITS: u64 = 23;
/// In the numbers of messages that accounts are filled with.
const FILLED: u64 = 1 << 63;
/// The account of probe messages, in their numbers.
pub const PROBES: u64 = (1 << ACCOUNT_BITS) - 1;

/// Nanoseconds of a plan's seconds.
pub fn nanos(seconds: f64) -> Nanos {
    (seconds * NANOS_PER_SECOND as f64) as Nanos
}

/// An account.
#[derive(Clone, Debug)]
pub struct Account {
    /// What it logs in with.
    pub login: String,
    /// Where mail reaches it.
    pub address: String,
    password: String,
}

/// An endpoint of the server.
struct Front {
    imap: Endpoint,
    deliver: Endpoint,
    /// The endpoint that took mail of its users last.
    taken_at: Cell<usize>,
    idle: RefCell<Vec<Submission>>,
}

/// See the module text.
pub struct MailServer {
    /// Position of the instance in the plan.
    pub number: u32,
    /// What the plan says of it.
    pub spec: MailInstance,
    /// Its accounts, in order.
    pub accounts: Vec<Account>,
    /// What messages are made of.
    pub corpus: Corpus,
    /// What was sent and received.
    pub ledger: Ledger,
    /// Time.
    pub handle: Handle,
    /// Which user is at which endpoint.
    pub endpoints: Rc<Endpoints>,
    network: Rc<dyn Network>,
    fronts: Vec<Front>,
    nonce: u64,
}

impl MailServer {
    /// Reads passwords and certificates; speaks to no one yet.
    ///
    /// # Errors
    /// When one of them cannot be read or lacks something.
    pub fn new(
        run: &RunContext,
        network: Rc<dyn Network>,
        number: u16,
        instance: &InstanceSpec,
    ) -> Result<MailServer, RunError> {
        let spec = MailInstance::of(instance).map_err(RunError::Spec)?;
        let tls = match &spec.ca_file {
            None => None,
            Some(path) => {
                let text = read_text(path, TEXT_BYTES_MAX).map_err(RunError::Spec)?;
                let trusting = TlsClient::trusting(text.as_bytes());
                Some(
                    trusting
                        .map_err(|error| RunError::Spec(format!("{}: {error}", path.display())))?,
                )
            }
        };
        let mut fronts = Vec::new();
        for position in 0..instance.databases.len() {
            let MailEndpoint { imap, deliver } =
                instance.database_options_as(position).map_err(RunError::Spec)?;
            let endpoint = |address: String, security: Security| Endpoint {
                tls_name: match &spec.tls_name {
                    Some(name) => name.clone(),
                    None => host_of(&address),
                },
                address,
                security,
                tls: tls.clone(),
            };
            fronts.push(Front {
                imap: endpoint(imap, spec.imap_tls.into()),
                deliver: endpoint(deliver, spec.deliver_tls.into()),
                taken_at: Cell::new(position),
                idle: RefCell::default(),
            });
        }
        let seed = instance.databases[0].seed;
        let accounts = accounts(&spec)?;
        Ok(MailServer {
            number: u32::from(number),
            ledger: Ledger::new(accounts.len(), fronts.len()),
            corpus: spec.corpus(seed).map_err(RunError::Spec)?,
            accounts,
            handle: run.handle.clone(),
            endpoints: Endpoints::new(distribution_of(spec.distribution), fronts.len()),
            network,
            fronts,
            // Messages of an earlier run of the same plan must not be taken for those of this one.
            nonce: (run.clock().anchor().utc_ns / 1_000_000) & ((1 << NONCE_BITS) - 1),
            spec,
        })
    }

    /// Where an endpoint is.
    pub fn address_of(&self, endpoint: usize) -> &str {
        &self.fronts[endpoint].imap.address
    }

    /// Where mail is handed in at an endpoint.
    pub fn delivers_at(&self, endpoint: usize) -> &str {
        &self.fronts[endpoint].deliver.address
    }

    /// The number of a message that an account writes as its how-manieth.
    pub fn message_id(&self, account: u64, sequence: u64) -> u64 {
        let sequence = sequence & ((1 << SEQUENCE_BITS) - 1);
        ((self.nonce << ACCOUNT_BITS | account) << SEQUENCE_BITS) | sequence
    }

    /// The number of a message that an account is filled with.
    pub fn filled_id(account: u64, folder: u64, sequence: u64) -> u64 {
        FILLED | account << 40 | (folder & 0xFFFF) << 24 | (sequence & 0xFF_FFFF)
    }

    /// Whether a message was sent by this run.
    pub fn is_of_this_run(&self, id: u64) -> bool {
        id & FILLED == 0 && id >> (ACCOUNT_BITS + SEQUENCE_BITS) == self.nonce
    }

    /// Who wrote a message, as far as its number tells.
    pub fn author_of(&self, id: u64) -> Option<u64> {
        let account = (id >> SEQUENCE_BITS) & ((1 << ACCOUNT_BITS) - 1);
        (self.is_of_this_run(id) && account < self.accounts.len() as u64).then_some(account)
    }

    /// A connection that has been greeted, at the endpoint where the account is to be. `client` is
    /// the account where its user connects, and nothing where anyone else does.
    ///
    /// # Errors
    /// What keeps it from coming about, at the last endpoint that was tried.
    pub async fn connect(
        &self,
        account: u64,
        client: Option<u64>,
    ) -> Result<(Imap, Open), MailError> {
        let options = ImapOptions {
            connect_timeout_ns: nanos(self.spec.connect_timeout_s),
            command_timeout_ns: nanos(self.spec.command_timeout_s),
            literal_bytes_max: self.spec.literal_max_bytes,
        };
        let mut tries = self.endpoints.tries(account).peekable();
        while let Some(at) = tries.next() {
            let endpoint = &self.fronts[at].imap;
            match Imap::connect(&*self.network, endpoint, &self.handle, options).await {
                Ok(imap) => return Ok((imap, self.endpoints.opened(client, at))),
                Err(error) => {
                    self.endpoints.refused(at);
                    if tries.peek().is_none() || !error.is_lost() {
                        return Err(error);
                    }
                }
            }
        }
        unreachable!("there is an endpoint to try")
    }

    /// Logs an account in.
    ///
    /// # Errors
    /// What the server says.
    pub async fn login(&self, imap: &mut Imap, account: u64) -> Result<(), MailError> {
        let Account { login, password, .. } = &self.accounts[account as usize];
        imap.login(login, password).await
    }

    /// Hands a message to the server and enters it in the ledger. Where its sender reads comes
    /// first, or where mail was taken that could not be handed in there.
    ///
    /// # Errors
    /// When it was certainly not delivered.
    pub async fn deliver(&self, from: u64, to: &[u64], mail: &Mail) -> Result<Delivery, MailError> {
        let taken_at = &self.fronts[self.endpoints.of(from)].taken_at;
        let mut tries = self.endpoints.onward(taken_at.get()).peekable();
        while let Some(at) = tries.next() {
            match self.hand_in(at, from, to, mail).await {
                Err(error) if error.is_lost() && tries.peek().is_some() => {
                    self.endpoints.refused(at);
                }
                Err(error) => return Err(error),
                Ok(delivery) => {
                    taken_at.set(at);
                    return Ok(delivery);
                }
            }
        }
        unreachable!("there is an endpoint to try")
    }

    async fn hand_in(
        &self,
        endpoint: usize,
        from: u64,
        to: &[u64],
        mail: &Mail,
    ) -> Result<Delivery, MailError> {
        let front = &self.fronts[endpoint];
        let kept = front.idle.borrow_mut().pop();
        if let Some(kept) = kept {
            match self.hand_in_by(kept, endpoint, from, to, mail).await {
                // A server ends connections that wait for long, and the others wait as long.
                Err(error) if error.is_lost() && !matches!(error, MailError::TimedOut { .. }) => {
                    front.idle.borrow_mut().clear();
                }
                sent => return sent,
            }
        }
        let submission = self.submission(endpoint, from).await?;
        self.hand_in_by(submission, endpoint, from, to, mail).await
    }

    async fn hand_in_by(
        &self,
        mut submission: Submission,
        endpoint: usize,
        from: u64,
        to: &[u64],
        mail: &Mail,
    ) -> Result<Delivery, MailError> {
        let addresses: Vec<String> =
            to.iter().map(|account| self.accounts[*account as usize].address.clone()).collect();
        let sender = &self.accounts[from as usize].address;
        self.ledger.offer(mail.id, to);
        let sent = submission.send(sender, &addresses, &mail.bytes).await;
        match &sent {
            Ok(delivery) => self.ledger.settle(mail.id, endpoint, to, &delivery.recipients),
            Err(_) => self.ledger.withdraw(mail.id, to),
        }
        let (is_for_all, idle) = (!self.spec.deliver_login, &self.fronts[endpoint].idle);
        if submission.is_open() && is_for_all && idle.borrow().len() < SUBMISSIONS_KEPT {
            idle.borrow_mut().push(submission);
        } else if submission.is_open() {
            submission.quit().await;
        }
        sent
    }

    async fn submission(&self, endpoint: usize, from: u64) -> Result<Submission, MailError> {
        let Account { login, password, .. } = &self.accounts[from as usize];
        let account = self.spec.deliver_login.then_some((login.as_str(), password.as_str()));
        Submission::connect(
            &*self.network,
            &self.fronts[endpoint].deliver,
            DeliveryProtocol::from(self.spec.deliver_protocol),
            account,
            &self.handle,
            nanos(self.spec.command_timeout_s),
        )
        .await
    }

    /// Forgets connections that wait for a next message.
    pub fn hang_up(&self) {
        self.fronts.iter().for_each(|front| front.idle.borrow_mut().clear());
    }
}

/// The host of an address, as certificates bear it.
fn host_of(address: &str) -> String {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_matches(['[', ']']).to_owned()
}

fn accounts(spec: &MailInstance) -> Result<Vec<Account>, RunError> {
    let path = &spec.password_file;
    let text = read_text(path, TEXT_BYTES_MAX).map_err(RunError::Spec)?;
    let shown = path.display();
    let mut passwords = std::collections::BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        // The line itself is never shown: it may be a password.
        let (account, password) = text.split_once(':').ok_or_else(|| {
            RunError::Spec(format!("line {line} of {shown} has no colon; write ACCOUNT:PASSWORD"))
        })?;
        passwords.insert(account, password);
    }
    let numbers = (0..u64::from(spec.accounts)).map(|number| spec.first_account + number);
    let mut missing = Vec::new();
    let mut accounts = Vec::new();
    for number in numbers {
        let (Some(login), Some(address)) =
            (expand(&spec.login, number), expand(&spec.address, number))
        else {
            return Err(RunError::Spec(format!("{} is no pattern of accounts", spec.login)));
        };
        match passwords.get(login.as_str()).or_else(|| passwords.get("*")) {
            Some(password) => {
                accounts.push(Account { password: (*password).to_owned(), login, address })
            }
            None => missing.push(login),
        }
    }
    match missing.len() {
        0 => Ok(accounts),
        count => {
            missing.truncate(5);
            Err(RunError::Spec(format!(
                "{shown} has no line for {count} accounts, such as {}; add them, or `*:PASSWORD` \
                 for all others",
                missing.join(", ")
            )))
        }
    }
}
