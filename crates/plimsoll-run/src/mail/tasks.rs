//! What a user does in each task, as commands: an online program asks for what it shows, each time;
//! a cached one asks what has changed, downloads each message once, and tells the server of what it
//! did in one go.

use plimsoll_clients::mail::{Imap, MailError};
use plimsoll_workload::mail::{Check, Client, MailTask, Reaction};

use super::metrics;
use super::prepare::{MARKER_FOLDER, folder_name};
use super::user::User;

/// Folders whose state is asked for when all are synchronised.
const FOLDERS_MAX: usize = 50;
/// Words that are looked for; they are among those that texts are made of.
const SEARCHED_WORDS: u64 = 64;

/// Does one task.
///
/// # Errors
/// What the server says.
pub async fn carry_out(user: &mut User<'_>, task: MailTask) -> Result<(), MailError> {
    match task {
        MailTask::Logon => log_on_anew(user).await,
        MailTask::Logoff => log_off(user).await,
        _ => {
            user.log_on().await?;
            work(user, task).await
        }
    }
}

async fn work(user: &mut User<'_>, task: MailTask) -> Result<(), MailError> {
    match task {
        MailTask::SendMail | MailTask::RequestMeeting => {
            let count = user.habits.draw_recipients(&mut user.random);
            let to = user.draw_recipients(count);
            user.send(&to, "", task == MailTask::RequestMeeting).await
        }
        MailTask::ReadAndProcessMessages => read_and_process(user).await,
        MailTask::MoveMail => match any_message(user).await? {
            Some(uid) => {
                let folder = any_folder(user);
                user.r#move(&[uid], &folder).await
            }
            None => Ok(()),
        },
        MailTask::DeleteMail => match any_message(user).await? {
            Some(uid) => user.delete(&[uid]).await,
            None => Ok(()),
        },
        MailTask::ExportMail => export(user).await,
        MailTask::CreateFolder => {
            let name = format!(
                "plimsoll-made-{:x}-{}",
                user.server.message_id(0, 0),
                user.desk.folders_made
            );
            user.desk.folders_made += 1;
            user.timed(metrics::CREATE, async |imap| imap.create(&name).await).await
        }
        MailTask::SynchronizeFolders => synchronise(user).await,
        MailTask::Search => search(user).await,
        other => unreachable!("{} is refused with the plan", other.name()),
    }
}

async fn log_on_anew(user: &mut User<'_>) -> Result<(), MailError> {
    log_off(user).await?;
    user.log_on().await?;
    user.timed(metrics::LIST, async |imap| imap.list().await).await?;
    match user.habits.client {
        Client::Online => user.page().await.map(drop),
        Client::Cached => changes(user).await.map(drop),
    }
}

async fn log_off(user: &mut User<'_>) -> Result<(), MailError> {
    let _open = user.desk.open.take();
    match user.desk.imap.take() {
        Some(mut imap) if imap.is_open() => imap.logout().await,
        _ => Ok(()),
    }
}

fn any_folder(user: &mut User<'_>) -> String {
    let folders = user.server.spec.init.map_or(1, |init| init.folders.max(1));
    folder_name(1 + user.random.below(u64::from(folders)) as u32)
}

/// A message of the inbox by chance: an online user chooses from what it is shown, a cached one
/// from what it has.
async fn any_message(user: &mut User<'_>) -> Result<Option<u32>, MailError> {
    let uids: Vec<u32> = match user.habits.client {
        Client::Online => user.page().await?.iter().filter_map(|row| row.uid).collect(),
        Client::Cached => {
            changes(user).await?;
            user.desk.known.keys().copied().collect()
        }
    };
    Ok(match uids.len() {
        0 => None,
        count => Some(uids[user.random.below(count as u64) as usize]),
    })
}

async fn read_and_process(user: &mut User<'_>) -> Result<(), MailError> {
    match user.habits.client {
        Client::Online => read_online(user).await?,
        Client::Cached => read_cached(user).await?,
    }
    trim(user).await
}

async fn read_online(user: &mut User<'_>) -> Result<(), MailError> {
    user.timed(metrics::NOOP, async |imap| imap.noop().await).await?;
    let rows = user.page().await?;
    let unread = rows.iter().rev().filter(|row| !row.is_seen());
    let unread: Vec<u32> =
        unread.filter_map(|row| row.uid).take(user.habits.read_max as usize).collect();
    for uid in unread {
        let found = user.timed(metrics::BODY, async |imap| imap.show(uid, "1").await).await?;
        // Another client of the account may have removed it meanwhile.
        let Some(row) = found.rows.iter().find(|row| row.uid == Some(uid)) else {
            continue;
        };
        let check = user.read(uid, &row.contents);
        let reaction = user.habits.on_read.react(&mut user.random);
        if let Some(check) = check.filter(|check| reaction.attachment && check.attachment.bytes > 0)
        {
            open_attachment(user, uid, &check).await?;
        }
        user.timed(metrics::STORE, async |imap| imap.store(&[uid], "\\Seen").await).await?;
        answer(user, check.as_ref(), reaction).await?;
        if reaction.delete {
            user.delete(&[uid]).await?;
        } else if reaction.r#move {
            let folder = any_folder(user);
            user.r#move(&[uid], &folder).await?;
        }
    }
    Ok(())
}

async fn open_attachment(user: &mut User<'_>, uid: u32, check: &Check) -> Result<(), MailError> {
    let found = user.timed(metrics::ATTACHMENT, async |imap| imap.fetch(&[uid], "2").await).await?;
    if let Some(content) = found.rows.iter().flat_map(|row| &row.contents).next() {
        user.bytes_read += content.whole.bytes;
        user.hold(content.whole, check.attachment);
    }
    Ok(())
}

async fn answer(
    user: &mut User<'_>,
    check: Option<&Check>,
    reaction: Reaction,
) -> Result<(), MailError> {
    if reaction.reply {
        let author = check.and_then(|check| user.server.author_of(check.id));
        let to = match author {
            Some(author) => vec![author],
            None => user.draw_recipients(1),
        };
        user.send(&to, "Re: ", false).await?;
    }
    // Who else had the message is not known; as many as a new message has stand for them.
    for (is_wanted, prefix) in [(reaction.reply_all, "Re: "), (reaction.forward, "Fwd: ")] {
        if is_wanted {
            let count = user.habits.draw_recipients(&mut user.random);
            let to = user.draw_recipients(count);
            user.send(&to, prefix, false).await?;
        }
    }
    Ok(())
}

/// Asks what is new or changed in the inbox; UIDs of messages that came and are unread.
async fn changes(user: &mut User<'_>) -> Result<Vec<u32>, MailError> {
    let (first, since) = (user.desk.next_uid, user.desk.modseq);
    let is_counted = user.desk.imap.as_ref().is_some_and(|imap| imap.offers("CONDSTORE"));
    user.timed(metrics::NOOP, async |imap| imap.noop().await).await?;
    let highest = |imap: &Option<Imap>| {
        let mailbox = imap.as_ref().and_then(Imap::mailbox);
        mailbox.map_or(0, |mailbox| mailbox.highest_modseq)
    };
    // The first time everything is new. After that, what has changed; a server that does not count
    // changes tells of new messages only.
    let (from, since) = match is_counted && since > 0 {
        true => (1, since),
        false => (first, 0),
    };
    let found = user.timed(metrics::CHANGES, async |imap| imap.changes(from, since).await).await?;
    let mut new = Vec::new();
    for row in &found.rows {
        let Some(uid) = row.uid else { continue };
        if uid >= first && !row.is_seen() && row.flags.is_some() {
            new.push(uid);
        }
        user.desk.next_uid = user.desk.next_uid.max(uid.saturating_add(1));
    }
    if is_counted {
        user.desk.modseq = user.desk.modseq.max(found.modseq).max(highest(&user.desk.imap));
    }
    for gone in &found.vanished {
        user.desk.known.retain(|uid, _| !gone.contains(uid));
    }
    Ok(new)
}

async fn read_cached(user: &mut User<'_>) -> Result<(), MailError> {
    let mut new = changes(user).await?;
    // What is left for the next visit is asked for once more then.
    if let Some(left) = new.get(user.habits.read_max as usize) {
        (user.desk.next_uid, user.desk.modseq) = (*left, 0);
    }
    new.truncate(user.habits.read_max as usize);
    let (mut seen, mut moved, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for uid in new {
        let found = user.timed(metrics::BODY, async |imap| imap.fetch(&[uid], "").await).await?;
        let Some(row) = found.rows.iter().find(|row| row.uid == Some(uid)) else {
            continue;
        };
        let check = user.read(uid, &row.contents);
        let reaction = user.habits.on_read.react(&mut user.random);
        seen.push(uid);
        answer(user, check.as_ref(), reaction).await?;
        if reaction.delete {
            deleted.push(uid);
        } else if reaction.r#move {
            moved.push(uid);
        }
    }
    if !seen.is_empty() {
        user.timed(metrics::STORE, async |imap| imap.store(&seen, "\\Seen").await).await?;
    }
    let folder = any_folder(user);
    user.r#move(&moved, &folder).await?;
    user.delete(&deleted).await
}

/// Removes the oldest messages of an inbox that is too full.
async fn trim(user: &mut User<'_>) -> Result<(), MailError> {
    let surplus = user.exists().saturating_sub(user.habits.inbox_limit);
    if surplus == 0 {
        return Ok(());
    }
    let oldest = user.timed(metrics::PAGE, async |imap| imap.uids(1..=surplus).await).await?;
    user.delete(&oldest).await
}

/// Reads one whole old message of a folder.
async fn export(user: &mut User<'_>) -> Result<(), MailError> {
    let folder = any_folder(user);
    user.timed(metrics::SELECT, async |imap| imap.select(&folder).await).await?;
    let uids: Vec<u32> = user.page().await?.iter().filter_map(|row| row.uid).collect();
    if !uids.is_empty() {
        let uid = uids[user.random.below(uids.len() as u64) as usize];
        let found = user.timed(metrics::BODY, async |imap| imap.fetch(&[uid], "").await).await?;
        if let Some(row) = found.rows.iter().find(|row| row.uid == Some(uid)) {
            user.read(uid, &row.contents);
            // It is known by its UID of another folder.
            user.desk.known.remove(&uid);
        }
    }
    user.open_inbox().await
}

async fn synchronise(user: &mut User<'_>) -> Result<(), MailError> {
    let folders = user.timed(metrics::LIST, async |imap| imap.list().await).await?;
    let asked = folders.into_iter().filter(|folder| {
        folder.is_selectable && folder.name != "INBOX" && folder.name != MARKER_FOLDER
    });
    for folder in asked.take(FOLDERS_MAX) {
        user.timed(metrics::STATUS, async |imap| imap.status(&folder.name).await).await?;
    }
    match user.habits.client {
        Client::Online => user.page().await.map(drop),
        Client::Cached => changes(user).await.map(drop),
    }
}

/// A word in all texts of the inbox. A cached program looks in its own copy, which costs the server
/// nothing.
async fn search(user: &mut User<'_>) -> Result<(), MailError> {
    if user.habits.client == Client::Cached {
        return Ok(());
    }
    let word =
        plimsoll_workload::store::word(user.random.below(SEARCHED_WORDS)).to_ascii_lowercase();
    user.timed(metrics::SEARCH_COMMAND, async |imap| imap.search(&format!("TEXT \"{word}\"")).await)
        .await
        .map(drop)
}
