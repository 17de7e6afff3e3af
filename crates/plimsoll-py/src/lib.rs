//! The door between Python and Rust, and nothing else: plain data in, column buffers and JSON out.
//!
//! No Python code is ever called from here; every wait releases the interpreter and looks for
//! signals.

mod columns;
mod edb;
mod erase;
mod errors;
mod powercut;
mod probe;
mod raid;
mod run;
mod schema;
mod simulate;
mod sweep;
mod verify;
mod waiting;
mod witness;

use pyo3::prelude::*;

/// The extension module `plimsoll._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("is_release_build", cfg!(not(debug_assertions)))?;
    module.add_class::<run::Run>()?;
    module.add_class::<powercut::Powercut>()?;
    module.add_class::<witness::Witness>()?;
    module.add_class::<witness::WitnessLink>()?;
    module.add_function(wrap_pyfunction!(powercut::survey, module)?)?;
    module.add_function(wrap_pyfunction!(powercut::rehearse, module)?)?;
    module.add_function(wrap_pyfunction!(verify::verify, module)?)?;
    module.add_class::<edb::TableText>()?;
    module.add_function(wrap_pyfunction!(edb::edb_tables, module)?)?;
    module.add_function(wrap_pyfunction!(edb::edb_repair, module)?)?;
    module.add_function(wrap_pyfunction!(probe::probe, module)?)?;
    module.add_function(wrap_pyfunction!(erase::erase_device, module)?)?;
    module.add_function(wrap_pyfunction!(raid::raid_levels, module)?)?;
    module.add_function(wrap_pyfunction!(raid::raid_group, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep, module)?)?;
    module.add_function(wrap_pyfunction!(schema::run_spec_schema, module)?)?;
    module.add_function(wrap_pyfunction!(columns::columns, module)?)?;
    module.add_function(wrap_pyfunction!(columns::metrics, module)?)?;
    errors::register(module)
}
