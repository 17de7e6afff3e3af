//! Threads that work for tasks, and tasks that other threads wake.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use plimsoll_io::{
    Clock, Companion, CompanionError, Disk, Executor, MemoryDisk, MemoryOptions, Method,
    MethodChoice, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Random, RealDisk, RealDiskOptions,
    Stalled, inbox, within,
};

fn real_executor(method: MethodChoice) -> Executor {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions { method, ..RealDiskOptions::default() };
    let disk = RealDisk::open(options, clock.clone()).expect("some method works");
    Executor::new(clock, disk)
}

/// Every kind of sleep an executor of this machine may sleep.
fn executors() -> Vec<(&'static str, Executor)> {
    let clock = Rc::new(Clock::real());
    let memory: Rc<dyn Disk> =
        MemoryDisk::new(clock.clone(), Random::from_seed(0), MemoryOptions::ram());
    let mut executors = vec![("memory", Executor::new(clock, memory))];
    for method in Method::ALL {
        let options =
            RealDiskOptions { method: MethodChoice::Only(method), ..RealDiskOptions::default() };
        let clock = Rc::new(Clock::real());
        match RealDisk::open(options, clock.clone()) {
            Ok(disk) => executors.push((method.name(), Executor::new(clock, disk))),
            Err(error) => eprintln!("skipped: {error}"),
        }
    }
    executors
}

/// What threads send is taken in order, wakes the task, survives a receive that was dropped, and
/// ends with the last sender.
#[test]
fn an_inbox_gives_everything_in_order_and_then_ends() {
    for (name, executor) in executors() {
        let (sender, letters) = inbox();
        let threads: Vec<_> = (0..3u64)
            .map(|thread| {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    for number in 0..500u64 {
                        sender.send((thread, number));
                        if number % 50 == 0 {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    }
                })
            })
            .collect();
        drop(sender);
        let handle = executor.handle();
        let story = async move {
            let mut next = [0u64; 3];
            loop {
                let letter =
                    within(&handle, NANOS_PER_MILLISECOND / 10, letters.receive(&handle)).await;
                match letter {
                    None => {}
                    Some(None) => return next,
                    Some(Some((thread, number))) => {
                        assert_eq!(number, next[thread as usize], "{name}");
                        next[thread as usize] += 1;
                    }
                }
            }
        };
        assert_eq!(executor.run(story), Ok([500; 3]));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// A task that waits for its inbox alone is woken by a letter, and by the end; without a wake it
/// would sleep for ever.
#[test]
fn a_letter_and_the_end_wake_a_task_that_waits_for_nothing_else() {
    for (_, executor) in executors() {
        let (sender, letters) = inbox();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            sender.send(1);
            std::thread::sleep(Duration::from_millis(30));
        });
        let handle = executor.handle();
        let story = async move { (letters.receive(&handle).await, letters.receive(&handle).await) };
        assert_eq!(executor.run(story), Ok((Some(1), None)));
        thread.join().unwrap();
    }
}

/// A wake from another thread ends the sleep at once; without it the task would wait for the timer
/// beside it.
#[test]
fn a_wake_from_another_thread_ends_the_sleep() {
    for (name, executor) in executors() {
        let handle = executor.handle();
        let (is_set, waker) =
            (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None::<Waker>)));
        let (set, woken) = (is_set.clone(), waker.clone());
        let started = Instant::now();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            set.store(true, Ordering::SeqCst);
            if let Some(waker) = woken.lock().unwrap().take() {
                waker.wake();
            }
        });
        let waiting = poll_fn(move |context| {
            *waker.lock().unwrap() = Some(context.waker().clone());
            if is_set.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        });
        let woken =
            executor.run(async move { within(&handle, 20 * NANOS_PER_SECOND, waiting).await });
        assert_eq!(woken, Ok(Some(())));
        assert!(started.elapsed() < Duration::from_secs(10), "{name}: the timer woke it");
        thread.join().unwrap();
    }
}

/// Thousands of wakes at every moment of falling asleep: none may be lost.
#[test]
fn no_wake_falls_between_looking_and_sleeping() {
    for (name, executor) in executors() {
        let handle = executor.handle();
        let companion = Companion::new(&handle, "echo", || ()).unwrap();
        let started = Instant::now();
        let story = async move {
            for number in 0..3000u64 {
                let answer = companion.call(move |()| {
                    for _ in 0..(number * 7) % 400 {
                        std::hint::spin_loop();
                    }
                    number
                });
                let answer = within(&handle, 20 * NANOS_PER_SECOND, answer).await;
                assert_eq!(answer.map(|(value, _)| value), Some(number), "{name}");
            }
        };
        executor.run(story).unwrap();
        assert!(started.elapsed() < Duration::from_secs(15), "{name}: timers woke it");
    }
}

/// Operations are done in order on one thread, and each is stamped when it ended, not when the task
/// came to hear of it.
#[test]
fn a_companion_works_in_order_and_stamps_the_end() {
    let executor = real_executor(MethodChoice::Auto);
    let handle = executor.handle();
    let companion =
        Companion::new(&handle, "worker", || Rc::new(RefCell::new(Vec::new()))).unwrap();
    let story = async move {
        let work = |number: u64| {
            companion.call(move |log: &mut Rc<RefCell<Vec<u64>>>| {
                std::thread::sleep(Duration::from_millis(20));
                log.borrow_mut().push(number);
                log.borrow().clone()
            })
        };
        let (first, second) = (work(1), work(2));
        // The executor is busy meanwhile: the stamp must not show it.
        let until = Instant::now() + Duration::from_millis(200);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let heard = handle.now();
        let ((one, at_one), (two, at_two)) = (first.await, second.await);
        assert_eq!((one, two), (vec![1], vec![1, 2]));
        assert!(at_two >= at_one + 15 * NANOS_PER_MILLISECOND);
        assert!(heard >= at_two + 50 * NANOS_PER_MILLISECOND, "{heard} {at_two}");
    };
    executor.run(story).unwrap();
}

/// A dropped call that had not begun is not begun; one that had goes on, and its companion serves
/// the next.
#[test]
fn a_dropped_call_is_not_begun() {
    let executor = real_executor(MethodChoice::Auto);
    let handle = executor.handle();
    let done = Arc::new(AtomicUsize::new(0));
    let companion = Companion::new(&handle, "worker", || ()).unwrap();
    let count = |slowly: bool| {
        let done = done.clone();
        companion.call(move |()| {
            if slowly {
                std::thread::sleep(Duration::from_millis(100));
            }
            done.fetch_add(1, Ordering::SeqCst)
        })
    };
    let slow = count(true);
    for _ in 0..10 {
        drop(count(false));
    }
    let last = count(false);
    let (value, _) = executor.run(last).unwrap();
    assert_eq!(value, 1, "only the slow one was done before");
    drop(slow);
}

/// A bug in an operation is the caller's to hear, and the next call is served.
#[test]
fn a_panic_goes_on_where_it_was_called() {
    let executor = real_executor(MethodChoice::Auto);
    let companion = Companion::new(&executor.handle(), "worker", || 7).unwrap();
    let fails = companion.call(|_| -> u32 { panic!("a bug of the operation") });
    let story = std::panic::AssertUnwindSafe(|| executor.run(fails));
    let panic = std::panic::catch_unwind(story).expect_err("the panic is handed on");
    assert_eq!(panic.downcast_ref(), Some(&"a bug of the operation"));
    let executor = real_executor(MethodChoice::Auto);
    let companion = Companion::new(&executor.handle(), "worker", || 7).unwrap();
    assert_eq!(executor.run(companion.call(|seven| *seven)).unwrap().0, 7);
}

/// A thread has no place in virtual time: it is refused with a reason, not raced against.
#[test]
fn virtual_time_has_no_companions() {
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(0), MemoryOptions::default());
    let executor = Executor::new(clock, disk);
    let refused = Companion::new(&executor.handle(), "sqlite", || ()).err();
    assert_eq!(refused, Some(CompanionError::VirtualTime { name: "sqlite".into() }));
}

/// Waiting for a thread is no stall, and waiting for nothing is one, with threads and sockets or
/// without.
#[test]
fn only_waiting_for_nothing_is_a_stall() {
    for (_, executor) in executors() {
        let companion = Companion::new(&executor.handle(), "slow", || ()).unwrap();
        let slow = companion.call(|()| std::thread::sleep(Duration::from_millis(100)));
        assert!(executor.run(slow).is_ok());
        assert_eq!(executor.run(std::future::pending::<()>()), Err(Stalled));
    }
}
