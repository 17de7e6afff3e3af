//! The tasks that a published score sheet of LoadGen lists, by its names: what a plan names, what
//! is counted and what a report shows.

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say what they are")]
pub enum MailTask {
    Logon,
    Logoff,
    SendMail,
    ReadAndProcessMessages,
    MoveMail,
    DeleteMail,
    ExportMail,
    CreateFolder,
    SynchronizeFolders,
    Search,
    RequestMeeting,
    BrowseCalendar,
    MakeAppointment,
    BrowseContacts,
    CreateContact,
    BrowseTasks,
    CreateTask,
    PostFreeBusy,
    PublicFolderPost,
    BrowsePublicFolder,
    EditRules,
    DownloadOab,
    EditSmartFolders,
    InitializeMailbox,
    UserInit,
    UserTerm,
    ModuleInit,
    ModuleTerm,
}

use MailTask::{
    BrowseCalendar, BrowseContacts, BrowsePublicFolder, BrowseTasks, CreateContact, CreateFolder,
    CreateTask, DeleteMail, DownloadOab, EditRules, EditSmartFolders, ExportMail,
    InitializeMailbox, Logoff, Logon, MakeAppointment, ModuleInit, ModuleTerm, MoveMail,
    PostFreeBusy, PublicFolderPost, ReadAndProcessMessages, RequestMeeting, Search, SendMail,
    SynchronizeFolders, UserInit, UserTerm,
};

/// All of them with their names.
const NAMED: [(MailTask, &str); 28] = [
    (Logon, "Logon"),
    (Logoff, "Logoff"),
    (SendMail, "SendMail"),
    (ReadAndProcessMessages, "ReadAndProcessMessages"),
    (MoveMail, "MoveMail"),
    (DeleteMail, "DeleteMail"),
    (ExportMail, "ExportMail"),
    (CreateFolder, "CreateFolder"),
    (SynchronizeFolders, "SynchronizeFolders"),
    (Search, "Search"),
    (RequestMeeting, "RequestMeeting"),
    (BrowseCalendar, "BrowseCalendar"),
    (MakeAppointment, "MakeAppointment"),
    (BrowseContacts, "BrowseContacts"),
    (CreateContact, "CreateContact"),
    (BrowseTasks, "BrowseTasks"),
    (CreateTask, "CreateTask"),
    (PostFreeBusy, "PostFreeBusy"),
    (PublicFolderPost, "PublicFolderPost"),
    (BrowsePublicFolder, "BrowsePublicFolder"),
    (EditRules, "EditRules"),
    (DownloadOab, "DownloadOab"),
    (EditSmartFolders, "EditSmartFolders"),
    (InitializeMailbox, "InitializeMailbox"),
    (UserInit, "UserInit"),
    (UserTerm, "UserTerm"),
    (ModuleInit, "ModuleInit"),
    (ModuleTerm, "ModuleTerm"),
];

impl MailTask {
    /// All of them, in a fixed order.
    pub fn all() -> impl Iterator<Item = MailTask> {
        NAMED.iter().map(|(task, _)| *task)
    }

    /// As the score sheet spells it.
    pub fn name(self) -> &'static str {
        NAMED[self as usize].1
    }

    /// The task of a name.
    pub fn of_name(name: &str) -> Option<MailTask> {
        let found = NAMED.iter().find(|(_, known)| *known == name);
        found.map(|(task, _)| *task)
    }

    /// Whether it is a phase of a run and not something a user does in its day.
    pub fn is_phase(self) -> bool {
        matches!(self, InitializeMailbox | UserInit | UserTerm | ModuleInit | ModuleTerm)
    }
}
