//! The families that this version knows, and reading a spec with the families it is for.

use std::rc::Rc;

use crate::RunError;
use crate::family::Families;
use crate::files::Files;
use crate::homes::Homes;
use crate::mail::MailFamily;
use crate::records::Records;
use crate::spec::RunSpec;
use crate::store::Store;

/// The families of this version. A further one is a folder and a line here.
pub fn built_in() -> Families {
    Families::of(vec![
        Rc::new(Records::default()),
        Rc::new(Files::default()),
        Rc::new(Homes),
        Rc::new(Store),
        Rc::new(MailFamily::real()),
    ])
}

impl RunSpec {
    /// Reads a spec and checks what the types cannot.
    ///
    /// # Errors
    /// [`RunError::Spec`] with what is wrong. The user's plan was checked before, so this is a
    /// second line of defence.
    pub fn from_json(text: &str) -> Result<RunSpec, RunError> {
        RunSpec::from_json_for(text, &built_in())
    }

    /// The same for a run with families of its own.
    ///
    /// # Errors
    /// [`RunError::Spec`] with what is wrong.
    pub fn from_json_for(text: &str, families: &Families) -> Result<RunSpec, RunError> {
        let spec = RunSpec::read(text)?;
        families.check(&spec)?;
        Ok(spec)
    }
}
