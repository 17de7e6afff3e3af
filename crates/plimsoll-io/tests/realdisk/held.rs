//! Writes that are held while a snapshot is taken: nothing changes meanwhile, nothing is lost, and
//! nobody waits for ever.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_io::{
    Clock, Disk, Durability, Executor, Files, Held, OpenMode, RealDisk, RealDiskOptions,
    StopSignal, WriteHold,
};

use super::CONTEXT;
use super::place::Place;

const BLOCK: usize = 4096;
const LONG: Duration = Duration::from_secs(20);

/// Writes numbers one after the other until told; what the longest write took.
fn writer(path: PathBuf, hold: WriteHold, stop: StopSignal, end: StopSignal) -> (u64, Duration) {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions::default();
    let disk = RealDisk::open(options, clock.clone()).expect("this machine has a method");
    let held: Rc<dyn Disk> = Rc::new(Held::new(disk, clock.clone(), hold, stop));
    let files = Files::new(held.clone());
    let story = async move {
        let file = files.open(&path, OpenMode::Create, CONTEXT).await.expect("new");
        let (mut count, mut longest) = (0_u64, Duration::ZERO);
        while !end.is_wanted() {
            count += 1;
            let mut buffer = file.allocate(BLOCK);
            buffer[..8].copy_from_slice(&count.to_le_bytes());
            let begun = Instant::now();
            file.write(0, buffer, Durability::Durable, CONTEXT).await.expect("there is room");
            longest = longest.max(begun.elapsed());
            let read = file.read(0, file.allocate(BLOCK), CONTEXT).await.expect("written");
            assert_eq!(read[..8], count.to_le_bytes());
        }
        file.close(CONTEXT).await.expect("open");
        (count, longest)
    };
    Executor::new(clock, held).run(story).expect("every operation completes")
}

fn within(what: &str, mut until: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !until() {
        assert!(begun.elapsed() < LONG, "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs two writers behind one hold beside a story; how many they wrote, and how long they waited.
fn beside_writers(
    name: &str,
    story: impl FnOnce(&WriteHold, &StopSignal, &[PathBuf]),
) -> Vec<(u64, Duration)> {
    let place = Place::new(name);
    let paths = [place.root().join("one"), place.root().join("two")];
    let (hold, stop, end) = (WriteHold::default(), StopSignal::default(), StopSignal::default());
    std::thread::scope(|scope| {
        let writers: Vec<_> = paths
            .iter()
            .map(|path| {
                let (path, hold, stop, end) =
                    (path.clone(), hold.clone(), stop.clone(), end.clone());
                scope.spawn(move || writer(path, hold, stop, end))
            })
            .collect();
        within("the first write", || paths.iter().all(|path| number_in(path) > 0));
        story(&hold, &stop, &paths);
        end.stop();
        writers.into_iter().map(|writer| writer.join().expect("it wrote")).collect()
    })
}

fn number_in(path: &PathBuf) -> u64 {
    let read = std::fs::read(path).unwrap_or_default();
    read.get(..8).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
}

/// Both files stand still from one moment on, and go on where they were.
#[test]
fn what_is_held_stands_still_and_goes_on() {
    let written = beside_writers("held", |hold, _, paths| {
        for _ in 0..3 {
            hold.hold(LONG);
            within("the hold", || hold.holds());
            let then: Vec<u64> = paths.iter().map(number_in).collect();
            std::thread::sleep(Duration::from_millis(100));
            let now: Vec<u64> = paths.iter().map(number_in).collect();
            assert_eq!(then, now, "a write went past the hold");
            assert!(hold.release(), "it was held all the time");
            within("the next write", || {
                paths.iter().zip(&now).all(|(path, before)| number_in(path) > *before)
            });
        }
    });
    for (count, longest) in written {
        assert!(count > 3);
        assert!(longest >= Duration::from_millis(90), "who was held waited {longest:?}");
    }
}

/// Who holds and dies holds no one for ever, and is not told afterwards that it was held.
#[test]
fn a_hold_ends_by_itself() {
    let written = beside_writers("held-over", |hold, _, paths| {
        hold.hold(Duration::from_millis(150));
        within("the hold", || hold.holds());
        let then = number_in(&paths[0]);
        within("the end of the hold", || number_in(&paths[0]) > then);
        assert!(!hold.holds());
        assert!(!hold.release(), "the writes had gone on before");
    });
    assert!(written.iter().all(|(_, longest)| *longest < LONG / 2));
}

/// A run that is to stop has its databases to close, which writes.
#[test]
fn a_wish_to_stop_ends_a_hold() {
    beside_writers("held-stop", |hold, stop, paths| {
        hold.hold(LONG);
        within("the hold", || hold.holds());
        let then = number_in(&paths[1]);
        stop.stop();
        within("the next write", || number_in(&paths[1]) > then);
        assert!(!hold.release(), "the writes had gone on before");
    });
}

/// A disk that is gone holds nothing back, and nobody waits for it.
#[test]
fn a_disk_that_is_gone_is_not_waited_for() {
    let mut kept = WriteHold::default();
    beside_writers("held-gone", |hold, _, _| kept = hold.clone());
    kept.hold(LONG);
    assert!(kept.holds(), "no disk is left");
}
