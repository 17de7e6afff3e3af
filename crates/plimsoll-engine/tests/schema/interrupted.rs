//! Changes that are cut short: by a power cut, by a kill, by a kill and then a power cut, by a
//! caller that stops waiting.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_engine::error::EngineError;
use plimsoll_io::{Loss, MemoryDisk, Random};

use crate::life::*;
use crate::support::*;
use crate::world::*;

const EVENTS_MAX: u64 = 1_500;

/// Moments to cut at: every one at first, fewer later.
fn moments(limit: u64) -> impl Iterator<Item = u64> {
    let mut event = 1;
    std::iter::from_fn(move || {
        let now = event;
        event += 1 + event / 12;
        (now <= limit).then_some(now)
    })
}

/// Why it matters: a tree that is in no catalog, or a catalog that names a tree that is not there,
/// stays so for ever.
#[test]
fn a_power_cut_leaves_the_old_table_or_the_new_one_and_no_lost_page() {
    let base = base(1);
    for change in ALL {
        let mut outcomes = [0, 0];
        for event in moments(EVENTS_MAX) {
            let disk = copy(&base);
            disk.power_cut_at_event(event);
            let acknowledged = Rc::new(Cell::new(false));
            let done = acknowledged.clone();
            run_until_power_lost(&disk, move |files, handle| async move {
                let opened = open(&files, &handle, &setup(), 5).await;
                let Ok((instance, _)) = opened else { return };
                let busy = keep_busy(instance.clone(), handle.clone());
                drop(handle.spawn(async move { drop(busy.await) }));
                let made = carry_out(&instance, change).await;
                done.set(made.is_ok());
                let _ = instance.checkpoint().await;
                let _ = instance.close().await;
            });
            disk.power_cut();
            let mut random = Random::from_seed(event);
            let loss = [Loss::Everything, Loss::Drawn][(event % 2) as usize];
            let found = disk.crash_image(loss, &mut random);
            let made = look_after(&found, change, format!("{change:?} cut at {event}"));
            assert!(
                made || !acknowledged.get(),
                "{change:?} cut at {event}: acknowledged and lost"
            );
            outcomes[usize::from(made)] += 1;
        }
        assert!(outcomes.iter().all(|count| *count > 2), "{change:?}: {outcomes:?}");
    }
}

/// How long a change takes where nothing disturbs it.
fn duration_ns(base: &Rc<MemoryDisk>, change: Change) -> u64 {
    let disk = copy(base);
    live(&disk, move |files, handle| async move {
        let instance = open_with(&files, &handle, options(&setup())).await;
        let begun = handle.now();
        carry_out(&instance, change).await.unwrap();
        handle.now() - begun
    })
}

/// A kill in the middle, a recovery that is killed as well, another one that the power cuts short:
/// each goes on with what the one before had begun.
#[test]
fn kills_and_a_power_cut_one_after_the_other_leave_no_lost_page() {
    let base = base(2);
    for change in ALL {
        let duration_ns = duration_ns(&base, change);
        assert!(duration_ns > 0, "{change:?} takes no time");
        let mut outcomes = [0, 0];
        for step in 0..30 {
            let label = format!("{change:?} killed at step {step}");
            let disk = copy(&base);
            let acknowledged = live(&disk, move |files, handle| async move {
                let instance = open_with(&files, &handle, options(&setup())).await;
                let done = Rc::new(Cell::new(false));
                let (changing, noting) = (instance.clone(), done.clone());
                drop(handle.spawn(async move {
                    noting.set(carry_out(&changing, change).await.is_ok());
                }));
                handle.sleep(duration_ns * step / 25).await;
                done.get()
            });
            // A second life is killed while it recovers, or after that.
            live(&disk, move |files, handle| async move {
                let beside = handle.clone();
                drop(handle.spawn(async move {
                    let _ = open(&files, &beside, &setup(), 6).await;
                    std::future::pending::<()>().await;
                }));
                handle.sleep(duration_ns * (step % 7) / 7).await;
            });
            disk.power_cut_at_event(disk.events() + 3 + step * step);
            run_until_power_lost(&disk, move |files, handle| async move {
                if let Ok((instance, _)) = open(&files, &handle, &setup(), 7).await {
                    let _ = instance.checkpoint().await;
                }
            });
            disk.power_cut();
            let found = disk.crash_image(Loss::Drawn, &mut Random::from_seed(step));
            let made = look_after(&found, change, label.clone());
            assert!(made || !acknowledged, "{label}: acknowledged and lost");
            outcomes[usize::from(made)] += 1;
        }
        assert!(outcomes.iter().all(|count| *count > 1), "{change:?}: {outcomes:?}");
    }
}

/// A caller that stops waiting leaves the table as it was or as it was to become, and an instance
/// that can be closed.
#[test]
fn a_change_may_be_dropped_at_each_of_its_waits() {
    let base = base(3);
    for change in ALL {
        for polls in 0..12 {
            let disk = copy(&base);
            let label = format!("{change:?} dropped at poll {polls}");
            live(&disk, move |files, handle| async move {
                let instance = open_with(&files, &handle, options(&setup())).await;
                let done = give_up_after(polls, carry_out(&instance, change)).await;
                done.unwrap_or(Ok(())).unwrap();
                instance.close().await.unwrap();
                check_file(&files, &handle, &label).await;
            });
            look_after(&disk, change, format!("{change:?}, again"));
        }
    }
}

/// A close does not wait for an index to be built: the change ends, and nothing is left of it.
#[test]
fn a_close_beside_a_change_ends_and_leaves_a_sound_file() {
    let base = base(4);
    for change in ALL {
        let duration_ns = duration_ns(&base, change);
        for step in 0..12 {
            let disk = copy(&base);
            let label = format!("{change:?} closed at step {step}");
            let acknowledged = live(&disk, move |files, handle| async move {
                let instance = open_with(&files, &handle, options(&setup())).await;
                let changing = instance.clone();
                let task = handle.spawn(async move { carry_out(&changing, change).await });
                handle.sleep(duration_ns * step / 10).await;
                instance.close().await.unwrap();
                check_file(&files, &handle, &label).await;
                match task.await {
                    Ok(()) => true,
                    Err(EngineError::Closing) => false,
                    Err(error) => panic!("{label}: {error}"),
                }
            });
            let made =
                look_after(&disk, change, format!("{change:?} closed at step {step}, again"));
            assert_eq!(made, acknowledged, "{change:?} at step {step}");
        }
    }
}

/// An instance that stops as a crash would, with a change half made, leaves its files to whoever
/// opens them at once.
#[test]
fn an_instance_abandoned_beside_a_change_is_opened_again_at_once() {
    let base = base(6);
    for change in ALL {
        let duration_ns = duration_ns(&base, change);
        for step in 0..24 {
            let disk = copy(&base);
            let label = format!("{change:?} abandoned at step {step}");
            live(&disk, move |files, handle| async move {
                let instance = open_with(&files, &handle, options(&setup())).await;
                let changing = instance.clone();
                drop(handle.spawn(async move { drop(carry_out(&changing, change).await) }));
                handle.sleep(duration_ns * step / 22).await;
                instance.abandon().await.unwrap_or_else(|error| panic!("{label}: {error}"));
                let opened = open(&files, &handle, &setup(), 8).await;
                let (instance, _) = opened.unwrap_or_else(|error| panic!("{label}: {error}"));
                was_made(&instance, change).await;
                carry_out_again(&instance, change).await;
                instance.close().await.unwrap();
                check_file(&files, &handle, &label).await;
            });
        }
    }
}

/// Makes the change if it was not made.
async fn carry_out_again(instance: &Rc<plimsoll_engine::Instance>, change: Change) {
    if !was_made(instance, change).await {
        carry_out(instance, change).await.unwrap();
    }
}
