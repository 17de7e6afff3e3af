//! Waits until every cache holds the wanted share of its limit: only then do counters mean what
//! they mean later. Then the rate of loads that aim at database I/O is measured and fixed.

use plimsoll_io::NANOS_PER_SECOND;

use crate::RunError;
use crate::events::Level;
use crate::outcome::PhaseResult;
use crate::phase::calibrate::{self, Follower};
use crate::sampler::Sampler;
use crate::state::RunState;

pub async fn act(
    state: &mut RunState,
    sampler: &Sampler,
    name: &str,
    cache_percent: u32,
    timeout_s: f64,
) -> Result<PhaseResult, RunError> {
    state.require_open(name)?;
    let started = state.run.now_together().await?;
    let deadline = started + (timeout_s * NANOS_PER_SECOND as f64) as u64;
    let mut follower = Follower::new(state, sampler, started).await?;
    loop {
        state.check_load()?;
        let now = state.run.now_together().await?;
        follower.look(state, sampler, now).await?;
        let waited_s = (now - started) as f64 / NANOS_PER_SECOND as f64;
        let coldest = state.run.gather(state.coldest_cache(cache_percent)).await?;
        match coldest.into_iter().flatten().min_by_key(|(_, used)| *used) {
            None => {
                let has_cache = state.run.gather(state.has_cache()).await?.contains(&true);
                let text = if has_cache {
                    format!(
                        "every cache holds {cache_percent} % of its limit after {waited_s:.1} s"
                    )
                } else {
                    "there is no cache to warm".to_owned()
                };
                state.run.report_once(Level::Info, "cache_warm", text);
                return Ok(PhaseResult {
                    calibrations: calibrate::act(state, sampler).await?,
                    ..PhaseResult::default()
                });
            }
            Some((instance, used_percent)) if now >= deadline => {
                return Err(RunError::CacheNotWarm {
                    instance,
                    waited_s,
                    used_percent,
                    wanted_percent: cache_percent,
                });
            }
            Some(_) => state.run.sleep_until(now + NANOS_PER_SECOND / 20).await?,
        }
    }
}
