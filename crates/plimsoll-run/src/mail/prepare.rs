//! Accounts before a run: ours are those that bear our marker, and no other is ever touched. New
//! ones are filled, and what an earlier run has begun is finished.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use plimsoll_clients::mail::{Imap, MailError};
use plimsoll_io::{NANOS_PER_SECOND, Permits};
use plimsoll_workload::mail::Letter;

use super::server::MailServer;
use super::spec::InitSpec;
use crate::RunError;
use crate::context::RunContext;
use crate::events::Level;
use crate::records::until_stop;

/// Where the marker lies.
pub const MARKER_FOLDER: &str = "Plimsoll";
/// Where copies of sent messages go.
pub const SENT: &str = "Sent";
const MARKER_SUBJECT: &str = "Plimsoll marker";
/// Accounts that are looked at together.
const AT_ONCE: usize = 16;
/// Accounts that are named in a message about many.
const NAMED: usize = 5;

/// What became of all accounts so far.
#[derive(Default)]
struct Progress {
    marked: Cell<u64>,
    filled: Cell<u64>,
    capabilities: RefCell<Option<String>>,
    not_ours: RefCell<Vec<String>>,
    failed: RefCell<Vec<String>>,
    failed_count: Cell<u64>,
}

/// The folder of a number, from 1 on.
pub fn folder_name(number: u32) -> String {
    format!("plimsoll-{number:02}")
}

/// Looks at every account, and fills those that are new.
///
/// # Errors
/// When accounts cannot be reached, or are not ours: all of them together.
pub async fn prepare(run: &RunContext, server: &Rc<MailServer>) -> Result<(), RunError> {
    let begun = run.handle.now();
    let progress = Rc::new(Progress::default());
    let permits = Rc::new(Permits::new(AT_ONCE));
    let mut tasks = Vec::new();
    for account in 0..server.accounts.len() as u64 {
        let (server, progress, permits) = (server.clone(), progress.clone(), permits.clone());
        tasks.push(run.handle.spawn(async move {
            let _permit = permits.acquire().await;
            // With the first that cannot be reached, thousands more would only repeat it.
            if progress.failed_count.get() < AT_ONCE as u64 {
                look_at(&server, account, &progress).await;
            }
        }));
    }
    until_stop(run, async {
        for task in tasks {
            task.await;
        }
    })
    .await?;
    judge(server, &progress)?;
    let seconds = (run.handle.now() - begun) as f64 / NANOS_PER_SECOND as f64;
    if let Some(told) = progress.capabilities.take() {
        run.report(Level::Info, "mail_server", told);
    }
    run.report(
        Level::Info,
        "mail_initialised",
        format!(
            "{} accounts are ours, {} of them new; {} messages were laid into them in {seconds:.1} \
             s",
            server.accounts.len(),
            progress.marked.get(),
            progress.filled.get()
        ),
    );
    Ok(())
}

fn judge(server: &MailServer, progress: &Progress) -> Result<(), RunError> {
    let failed = progress.failed.borrow();
    if !failed.is_empty() {
        return Err(RunError::Service(format!(
            "{} accounts or more cannot be prepared: {}",
            progress.failed_count.get(),
            failed.join("; ")
        )));
    }
    let not_ours = progress.not_ours.borrow();
    if not_ours.is_empty() {
        return Ok(());
    }
    let shown: Vec<_> = not_ours.iter().take(NAMED).map(String::as_str).collect();
    let why = match server.spec.init {
        None => {
            "no marker message of ours is in them; let them be initialised (--init), if they may \
             be used"
        }
        Some(_) => "they hold messages and no marker of ours; empty them, or name other accounts",
    };
    Err(RunError::Spec(format!(
        "{} accounts are not touched, such as {}: {why}",
        not_ours.len(),
        shown.join(", ")
    )))
}

async fn look_at(server: &MailServer, account: u64, progress: &Progress) {
    let login = &server.accounts[account as usize].login;
    match prepare_one(server, account, progress).await {
        Ok(true) => {}
        Ok(false) => progress.not_ours.borrow_mut().push(login.clone()),
        Err(error) => {
            progress.failed_count.set(progress.failed_count.get() + 1);
            let mut failed = progress.failed.borrow_mut();
            if failed.len() < NAMED {
                failed.push(format!("{login}: {error}"));
            }
        }
    }
}

/// Whether the account is ours now.
async fn prepare_one(
    server: &MailServer,
    account: u64,
    progress: &Progress,
) -> Result<bool, MailError> {
    let (mut imap, _open) = server.connect(account, None).await?;
    server.login(&mut imap, account).await?;
    if progress.capabilities.borrow().is_none() {
        let used: Vec<_> =
            ["CONDSTORE", "IDLE", "LITERAL+", "MOVE", "QRESYNC", "SASL-IR", "UIDPLUS"]
                .into_iter()
                .filter(|name| imap.offers(name))
                .collect();
        let greeting: String = imap.greeting().chars().take(100).collect();
        *progress.capabilities.borrow_mut() = Some(format!(
            "{} greets with {greeting:?} and offers {}",
            server.address_of(_open.at()),
            used.join(" ")
        ));
    }
    let folders = imap.list().await?;
    let has = |name: &str| folders.iter().any(|folder| folder.name == name);
    let is_marked = has(MARKER_FOLDER) && is_marked(&mut imap, &server.spec.marker).await?;
    if !is_marked {
        if server.spec.init.is_none() {
            return Ok(false);
        }
        for folder in folders.iter().filter(|folder| folder.is_selectable) {
            if imap.status(&folder.name).await? > 0 {
                return Ok(false);
            }
        }
        mark(&mut imap, &server.spec.marker, has(MARKER_FOLDER)).await?;
        progress.marked.set(progress.marked.get() + 1);
    }
    let init =
        server.spec.init.unwrap_or(InitSpec { folders: 1, messages_per_folder: 0, inbox: 0 });
    for name in (1..=init.folders.max(1)).map(folder_name).chain([SENT.to_owned()]) {
        if !has(&name) {
            imap.create(&name).await?;
        }
    }
    fill(server, &mut imap, account, "INBOX", 0, init.inbox, progress).await?;
    for number in 1..=init.folders {
        let name = folder_name(number);
        fill(server, &mut imap, account, &name, number, init.messages_per_folder, progress).await?;
    }
    // What comes of a goodbye does not matter.
    let _ = imap.logout().await;
    Ok(true)
}

async fn is_marked(imap: &mut Imap, marker: &str) -> Result<bool, MailError> {
    imap.select(MARKER_FOLDER).await?;
    let found = imap.search(&format!("SUBJECT \"{MARKER_SUBJECT}\" BODY \"{marker}\"")).await?;
    Ok(!found.is_empty())
}

async fn mark(imap: &mut Imap, marker: &str, has_folder: bool) -> Result<(), MailError> {
    if !has_folder {
        imap.create(MARKER_FOLDER).await?;
    }
    let text = format!(
        "From: <plimsoll@localhost>\r\nSubject: {MARKER_SUBJECT}\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=us-ascii\r\n\r\n{marker}\r\n\
         This account belongs to a storage test, which may change and delete everything in it.\r\n"
    );
    imap.append(MARKER_FOLDER, "\\Seen", text.as_bytes()).await.map(drop)
}

/// Lays messages into a folder until it holds so many.
async fn fill(
    server: &MailServer,
    imap: &mut Imap,
    account: u64,
    folder: &str,
    number: u32,
    wanted: u32,
    progress: &Progress,
) -> Result<(), MailError> {
    if wanted == 0 {
        return Ok(());
    }
    let there = imap.status(folder).await?;
    for sequence in there..wanted {
        let address = &server.accounts[account as usize].address;
        let id = MailServer::filled_id(account, u64::from(number), u64::from(sequence));
        let mail = server.corpus.mail(&Letter {
            id,
            from: address,
            to: std::slice::from_ref(address),
            prefix: "",
            is_meeting: false,
        });
        imap.append(folder, "\\Seen", &mail.bytes).await?;
        progress.filled.set(progress.filled.get() + 1);
        server.handle.breathe().await;
    }
    Ok(())
}
