//! What a plan says of a mail store on the engine.

use std::rc::Rc;

use schemars::JsonSchema;
use serde::Deserialize;

use plimsoll_stores::mail::{Filling, Layout};
use plimsoll_workload::mail::Corpus;

// Circle: one family has two kinds of instances, and both say the same of messages.
use crate::mail::spec::MessagesSpec;
use crate::spec::InstanceSpec;

/// What the first database of a store is filled with; the second one is the transport queue, and
/// mailboxes are moved to a third one and back.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreFilling {
    /// How many mailboxes there are.
    pub mailboxes: u32,
    /// Folders of each besides those that all have.
    pub folders: u32,
    /// Messages of each of these.
    pub messages_per_folder: u32,
    /// Messages of each inbox.
    pub inbox: u32,
    /// How messages are kept.
    pub layout: LayoutSpec,
    /// Views of each folder that are kept sorted besides the one by date.
    pub views: u32,
    /// Whether words are indexed.
    pub indexed: bool,
    /// What messages are like.
    pub messages: MessagesSpec,
}

/// What only this family knows of a database of a store on the engine.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MailStoreDatabase {
    /// What the store is filled with; its transport queue is filled with nothing.
    pub store: Option<StoreFilling>,
}

/// How messages are kept.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum LayoutSpec {
    /// A copy in each mailbox.
    PerMailbox,
    /// One for all recipients.
    Shared,
}

/// Mailboxes at most.
const MAILBOXES_MAX: u32 = 1_000_000;
/// Folders of a mailbox at most.
const FOLDERS_MAX: u32 = 1_000;
/// Messages of a mailbox at most.
const MESSAGES_MAX: u64 = 10_000_000;
/// Kept views at most.
const VIEWS_MAX: u32 = 16;

/// What a store of an instance is filled with, and what its messages are made of; every mistake at
/// once.
///
/// # Errors
/// What is wrong.
pub fn filling_of(instance: &InstanceSpec) -> Result<(Filling, Rc<Corpus>), String> {
    let name = &instance.name;
    if !(2..=3).contains(&instance.databases.len()) {
        return Err(format!(
            "instance {name} has {} databases; a mail store is two, the store and its queue, or \
             three with one to which mailboxes are moved",
            instance.databases.len()
        ));
    }
    let first = instance.database_options_as::<MailStoreDatabase>(0)?;
    let Some(spec) = first.store else {
        return Err(format!("instance {name} does not say what its store is filled with"));
    };
    for place in 1..instance.databases.len() {
        if instance.database_options_as::<MailStoreDatabase>(place)?.store.is_some() {
            return Err(format!("only the first database of instance {name} is filled"));
        }
    }
    let filling = Filling {
        mailboxes: spec.mailboxes,
        folders: spec.folders,
        messages_per_folder: spec.messages_per_folder,
        inbox: spec.inbox,
        layout: match spec.layout {
            LayoutSpec::PerMailbox => Layout::PerMailbox,
            LayoutSpec::Shared => Layout::Shared,
        },
        views: spec.views,
        is_indexed: spec.indexed,
    };
    let mut found = Vec::new();
    for (key, value, least, most) in [
        ("mailboxes", spec.mailboxes.into(), 1, MAILBOXES_MAX.into()),
        ("folders", spec.folders.into(), 1, FOLDERS_MAX.into()),
        ("messages of a mailbox", filling.messages(), 0, MESSAGES_MAX),
        ("views", spec.views.into(), 0, VIEWS_MAX.into()),
    ] {
        if !(least..=most).contains(&value) {
            found.push(format!("{key} is {value}; take {least} to {most}"));
        }
    }
    match spec.messages.corpus(instance.databases[0].seed) {
        Ok(corpus) if found.is_empty() => Ok((filling, Rc::new(corpus))),
        Ok(_) => Err(format!("instance {name}: {}", found.join("; "))),
        Err(error) => {
            found.push(error);
            Err(format!("instance {name}: {}", found.join("; ")))
        }
    }
}
