//! Makes the databases that are missing and opens all of them.

use std::rc::Rc;

use crate::RunError;
use crate::backend::Backend;
use crate::events::Level;
use crate::outcome::PhaseResult;
use crate::stage::Stage;

pub async fn act(stage: &mut Stage) -> Result<PhaseResult, RunError> {
    for (number, instance) in stage.spec.clone().instances.iter().enumerate() {
        let missing = instance
            .databases
            .iter()
            .filter(|database| database.existing_records.is_none());
        let bytes: u64 = missing.clone().map(|database| database.size_bytes).sum();
        stage.setting.tell(
            Level::Info,
            "instance_opening",
            format!(
                "instance {}: {} databases to prepare ({} MiB), {} to open",
                instance.name,
                missing.count(),
                bytes >> 20,
                instance.databases.len()
            ),
        );
        let backend = Backend::open(&stage.setting, number as u16, instance).await?;
        stage.backends.borrow_mut().push(Rc::new(backend));
    }
    stage.make_populations();
    Ok(PhaseResult {
        databases: stage.databases(),
        recoveries: stage.recoveries(),
        ..PhaseResult::default()
    })
}
