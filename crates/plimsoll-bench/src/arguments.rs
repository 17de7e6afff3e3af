//! Arguments of the form `name=value`. A program names every value it knows and its default;
//! anything else is refused, because a mistyped setting would give a figure of something nobody
//! asked for.

use std::collections::BTreeMap;

/// The values of one run.
#[derive(Clone, Debug)]
pub struct Arguments(BTreeMap<&'static str, String>);

impl Arguments {
    /// Reads the command line.
    ///
    /// # Errors
    /// An argument that is not `name=value` with a known name.
    pub fn read(
        known: &[(&'static str, &str)],
        given: impl Iterator<Item = String>,
    ) -> Result<Arguments, String> {
        let mut values: BTreeMap<&'static str, String> =
            known.iter().map(|(name, default)| (*name, (*default).to_owned())).collect();
        for argument in given {
            let names = || {
                known
                    .iter()
                    .map(|(name, default)| format!("{name}={default}"))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let (name, value) = argument.split_once('=').ok_or_else(|| {
                format!("{argument} is not name=value; the names and defaults are: {}", names())
            })?;
            let name = known
                .iter()
                .find(|(known, _)| *known == name)
                .ok_or_else(|| {
                    format!("{name} is unknown; the names and defaults are: {}", names())
                })?
                .0;
            values.insert(name, value.to_owned());
        }
        Ok(Arguments(values))
    }

    /// A text.
    ///
    /// # Panics
    /// When the program asks for a name it did not declare.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).expect("a program asks only for the names it declared")
    }

    /// A whole number.
    ///
    /// # Errors
    /// When it is not one.
    pub fn number(&self, name: &str) -> Result<u64, String> {
        let text = self.text(name);
        text.parse().map_err(|_| format!("{name}={text} is not a whole number"))
    }

    /// A number.
    ///
    /// # Errors
    /// When it is not one.
    pub fn decimal(&self, name: &str) -> Result<f64, String> {
        let text = self.text(name);
        text.parse().map_err(|_| format!("{name}={text} is not a number"))
    }
}
