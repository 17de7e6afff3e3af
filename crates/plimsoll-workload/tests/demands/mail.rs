//! Users of a mail server: their rates, their order, what their mail is like, and how much of it
//! there is.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};
use plimsoll_workload::mail::{
    Check, Client, Corpus, Day, Dispatch, Letter, MailDemand, MailHabits, MailTask, OnRead, Part,
    PartSum, Population, PopulationError, SizeClass,
};
use plimsoll_workload::{Demand, Done, Seen};

const HOUR_NS: Nanos = 3600 * NANOS_PER_SECOND;

fn habits(dispatch: Dispatch) -> MailHabits {
    MailHabits {
        tasks: vec![
            (MailTask::ReadAndProcessMessages, 52.0),
            (MailTask::SendMail, 6.0),
            (MailTask::Search, 2.0),
        ],
        day_ns: 8 * HOUR_NS,
        dispatch,
        client: Client::Online,
        recipients: vec![(1.0, 4)],
        on_read: OnRead::default(),
        inbox_limit: 125,
        page_rows: 25,
        read_max: 20,
    }
}

fn day(habits: &MailHabits, seed: u64, user: u64, users: u64) -> Day {
    Day::new(Rc::new(habits.clone()), &Random::from_seed(seed), user, users, 0)
}

/// All tasks of a group up to a time, in the order in which they are due.
fn group(habits: &MailHabits, seed: u64, users: u64, until: Nanos) -> Vec<(Nanos, u64, MailTask)> {
    let mut all = Vec::new();
    for user in 0..users {
        let mut day = day(habits, seed, user, users);
        loop {
            let (due, task) = day.take();
            if due >= until {
                break;
            }
            all.push((due, user, task));
        }
    }
    all.sort_unstable();
    all
}

/// A score sheet has 28 tasks, and their names are told apart by case and all.
#[test]
fn the_tasks_are_those_of_the_score_sheet() {
    let names: Vec<_> = MailTask::all().map(MailTask::name).collect();
    assert_eq!(names.len(), 28);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 28);
    for task in MailTask::all() {
        assert_eq!(MailTask::of_name(task.name()), Some(task));
    }
    assert_eq!(MailTask::of_name("sendmail"), None);
    assert_eq!(MailTask::all().filter(|task| task.is_phase()).count(), 5);
}

/// LoadGen dispatches the tasks of a group at one interval: any other spacing is another load.
#[test]
fn an_even_group_has_one_interval() {
    let habits = habits(Dispatch::Even);
    let users = 50;
    let all = group(&habits, 7, users, 2 * HOUR_NS);
    let interval = habits.gap_ns_mean() / users as f64;
    assert_eq!(all.len(), 50 * 60 / 4);
    for (position, (due, _, _)) in all.iter().enumerate() {
        let expected = (position as f64 + 0.5) * interval;
        assert!((*due as f64 - expected).abs() < 2.0, "{position}: {due}");
    }
    let first: Vec<u64> = all[..50].iter().map(|(_, user, _)| *user).collect();
    let second: Vec<u64> = all[50..100].iter().map(|(_, user, _)| *user).collect();
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 50, "each user once a round");
    assert_ne!(first, second, "and in another order each round");
    for users in 1..40 {
        let round = group(&habits, users, users, habits.gap_ns_mean() as Nanos);
        let once: BTreeSet<u64> = round.iter().map(|(_, user, _)| *user).collect();
        assert_eq!((round.len() as u64, once.len() as u64), (users, users), "{users} users");
    }
}

/// Rates of tasks are those stated, in both ways of dispatch; Poisson gaps scatter as exponential
/// ones do.
#[test]
fn rates_are_as_stated() {
    for dispatch in [Dispatch::Even, Dispatch::Poisson] {
        let habits = habits(dispatch);
        let all = group(&habits, 3, 200, 8 * HOUR_NS);
        let mut counts: BTreeMap<MailTask, f64> = BTreeMap::new();
        for (_, _, task) in &all {
            *counts.entry(*task).or_default() += 1.0 / 200.0;
        }
        for (task, per_day) in &habits.tasks {
            let (found, spread) = (counts[task], 4.0 * (per_day / 200.0).sqrt());
            assert!((found - per_day).abs() < spread, "{dispatch:?} {}: {found}", task.name());
        }
        let of_one: Vec<f64> =
            all.iter().filter(|(_, user, _)| *user == 5).map(|(due, _, _)| *due as f64).collect();
        let gaps: Vec<f64> = of_one.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let scatter = variance.sqrt() / mean;
        match dispatch {
            Dispatch::Even => assert!(scatter < 0.6, "{scatter}"),
            Dispatch::Poisson => assert!((0.6..1.5).contains(&scatter), "{scatter}"),
        }
    }
}

/// Half of the users on another host do what they would have done on this one.
#[test]
fn a_user_does_the_same_on_any_host_and_another_seed_does_not() {
    let habits = habits(Dispatch::Poisson);
    let whole = group(&habits, 11, 10, HOUR_NS);
    assert_eq!(whole, group(&habits, 11, 10, HOUR_NS));
    assert_ne!(whole, group(&habits, 12, 10, HOUR_NS));
    let mut alone = day(&habits, 11, 3, 10);
    for (due, _, task) in whole.iter().filter(|(_, user, _)| *user == 3) {
        assert_eq!(alone.take(), (*due, *task));
    }
}

/// A user that is held up does not ask for less: what came due waits in order, and each is counted
/// from the time it was due.
#[test]
fn a_late_user_has_its_tasks_waiting() {
    let habits = habits(Dispatch::Even);
    let day = Rc::new(RefCell::new(day(&habits, 1, 0, 4)));
    let mut demand = MailDemand::new(0, &Random::from_seed(1), day.clone());
    let first = demand.next(0, None).expect("a day has no end");
    let mut due = 0;
    let gap = habits.gap_ns_mean() as Nanos;
    let late = first.intended + 10 * gap;
    day.borrow_mut().advance(late, &mut |_| due += 1);
    assert!((10..=12).contains(&due), "{due}");
    assert_eq!(day.borrow().waiting(), due - 1, "the first is under way");
    let seen =
        Seen { intended: first.intended, finished: late, task: &first.task, done: Done::Done };
    let second = demand.next(late, Some(seen)).expect("a day has no end");
    assert!(second.intended > first.intended && second.intended < late);
    assert_eq!((first.task.number, second.task.number), (0, 1));
    // Counted once each, whoever is faster: the one who counts or the one who works.
    let mut again = 0;
    day.borrow_mut().advance(late, &mut |_| again += 1);
    assert_eq!(again, 0);
    for _ in 0..due + 3 {
        demand.next(late, None);
    }
    day.borrow_mut().advance(late + 100 * gap, &mut |_| again += 1);
    assert!((99..=101).contains(&again), "{again}");
}

/// The published users of LoadSim come out of the formula within 2 %, and one whose mail would
/// never end is refused.
#[test]
fn the_population_is_that_of_the_published_users() {
    let check = |new, recipients, processed, shares: [f64; 3], sent: f64, received: f64| {
        let [reply, reply_all, forward] = shares;
        let population = Population { new, recipients, processed, reply, reply_all, forward };
        let found = population.balance().expect("it has a balance");
        for (found, printed) in [(found.sent, sent), (found.received, received)] {
            assert!((found / printed - 1.0).abs() < 0.02, "{found} for {printed}");
        }
        // Exact, not only close: what is received is what all send to all.
        let new_copies = new * recipients;
        let answered = processed * population.branching() * found.received;
        assert!((found.received - new_copies - answered).abs() < 1e-9);
    };
    check(3.0, 4.0, 1.0, [0.10, 0.03, 0.05], 6.7, 20.4);
    check(6.0, 4.0, 0.91, [0.15, 0.05, 0.07], 19.8, 55.9);
    check(8.0, 5.0, 0.74, [0.20, 0.07, 0.07], 38.6, 118.9);
    let endless = Population {
        new: 1.0,
        recipients: 5.0,
        processed: 1.0,
        reply: 0.28,
        reply_all: 0.09,
        forward: 0.07,
    };
    let error = endless.balance().expect_err("it grows");
    assert_eq!(error, PopulationError::Grows(endless.branching()));
    assert!(error.to_string().contains("each message makes 1.08 more"));
}

/// Shares of reactions are those stated, and a deleted message is not moved.
#[test]
fn reactions_come_as_often_as_stated() {
    let on_read = OnRead {
        reply: 0.15,
        reply_all: 0.05,
        forward: 0.07,
        r#move: 0.20,
        delete: 0.40,
        attachment: 0.25,
    };
    let mut random = Random::from_seed(5);
    let all: Vec<_> = (0..20_000).map(|_| on_read.react(&mut random)).collect();
    let share = |what: fn(&plimsoll_workload::mail::Reaction) -> bool| {
        all.iter().filter(|reaction| what(reaction)).count() as f64 / all.len() as f64
    };
    for (found, stated) in [
        (share(|each| each.reply), 0.15),
        (share(|each| each.reply_all), 0.05),
        (share(|each| each.forward), 0.07),
        (share(|each| each.delete), 0.40),
        (share(|each| each.r#move), 0.20 * 0.60),
        (share(|each| each.attachment), 0.25),
    ] {
        assert!((found - stated).abs() < 0.015, "{found} for {stated}");
    }
    assert!(all.iter().all(|reaction| !(reaction.delete && reaction.r#move)));
}

/// Everything that is wrong is said at once.
#[test]
fn every_mistake_is_told() {
    let wrong = MailHabits {
        tasks: vec![
            (MailTask::SendMail, 0.0),
            (MailTask::SendMail, 1.0),
            (MailTask::UserInit, 1.0),
        ],
        day_ns: 0,
        recipients: vec![],
        on_read: OnRead { delete: 1.5, ..OnRead::default() },
        page_rows: 0,
        ..habits(Dispatch::Even)
    };
    let told = wrong.mistakes().join("\n");
    for part in [
        "per_day of SendMail is 0",
        "SendMail is listed twice",
        "UserInit is a phase",
        "day_h is 0",
        "recipients",
        "on_read.delete is 1.5",
        "page_rows is 0",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert!(habits(Dispatch::Even).mistakes().is_empty());
}

fn corpus(entropy: u32, duplicates: u32) -> Corpus {
    let sizes = vec![
        SizeClass { weight: 3.0, body_bytes: 1000, attachment_bytes: 0 },
        SizeClass { weight: 1.0, body_bytes: 2000, attachment_bytes: 10_000 },
    ];
    Corpus::new(42, sizes, entropy, duplicates).expect("it is possible")
}

fn letter<'a>(id: u64, to: &'a [String], is_meeting: bool) -> Letter<'a> {
    Letter { id, from: "a@example.org", to, prefix: "", is_meeting }
}

fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("headers end") + 4;
    bytes.split_at(at)
}

fn sum(bytes: &[u8]) -> Part {
    let mut part = PartSum::default();
    // In pieces: how they are cut must not matter.
    bytes.chunks(7).for_each(|piece| part.add(piece));
    part.part()
}

/// A reader can say of each message whether it is whole, whatever a server has put before it; one
/// flipped bit is seen.
#[test]
fn a_message_carries_its_own_check() {
    let to = ["b@example.org".to_owned(), "c@example.org".to_owned()];
    for id in 0..60 {
        let mail = corpus(60, 20).mail(&letter(id, &to, id % 7 == 0));
        let (headers, body) = split(&mail.bytes);
        let added = [b"Return-Path: <x>\r\nReceived: by there\r\n\tid 5\r\n", headers].concat();
        let check = Check::find(&added).expect("it is ours");
        assert_eq!((check.seed, check.id), (42, id));
        assert_eq!(check.body, sum(body));
        let mut flipped = body.to_vec();
        flipped[body.len() / 2] ^= 1;
        assert_ne!(check.body, sum(&flipped));
        let text = std::str::from_utf8(&mail.bytes).expect("plain text");
        assert!(text.lines().all(|line| line.len() <= 998), "lines as RFC 5322 allows them");
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']));
        if check.attachment.bytes > 0 {
            let at = text.find("file.bin\"\r\n\r\n").expect("an attachment") + 13;
            let attachment = &mail.bytes[at..at + check.attachment.bytes as usize];
            assert_eq!(check.attachment, sum(attachment));
            assert!((10_000..10_002).contains(&attachment.len()));
        }
    }
    assert_eq!(Check::find(b"Subject: x-plimsoll: seed=1\r\n\r\n"), None);
    assert_eq!(Check::find(b"X-Plimsoll: seed=1 id=zz\r\n\r\n"), None);
}

/// The stated share of bodies is one of a few, the others are all different, and random letters
/// come as often as stated.
#[test]
fn entropy_and_duplicates_are_as_stated() {
    let to = ["b@example.org".to_owned()];
    for duplicates in [0, 30, 100] {
        let corpus = corpus(50, duplicates);
        let mut bodies: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for id in 0..1000 {
            let mail = corpus.mail(&letter(id, &to, false));
            *bodies.entry(split(&mail.bytes).1.to_vec()).or_default() += 1;
        }
        let shared: u32 = bodies.values().filter(|count| **count > 1).sum();
        let stated = 10 * duplicates;
        assert!(shared.abs_diff(stated) <= 45, "{shared} of {stated}");
        assert!(bodies.values().filter(|count| **count > 1).count() <= 32);
    }
    for entropy in [0, 45, 75] {
        let corpus = corpus(entropy, 0);
        let mut random_lines = 0;
        let mut lines = 0;
        for id in 0..200 {
            let mail = corpus.mail(&letter(id, &to, false));
            for line in
                split(&mail.bytes).1.split(|byte| *byte == b'\n').filter(|line| line.len() == 77)
            {
                lines += 1;
                random_lines += u32::from(!line.contains(&b' '));
            }
        }
        let share = f64::from(random_lines) / f64::from(lines) * 6.0 / 8.0;
        assert!((share - f64::from(entropy) / 100.0).abs() < 0.03, "{share} for {entropy} %");
    }
    let error = Corpus::new(1, vec![], 10, 10).expect_err("no sizes");
    assert!(error.to_string().contains("at least one class"));
    let sizes = vec![SizeClass { weight: 1.0, body_bytes: 1, attachment_bytes: 0 }];
    let error = Corpus::new(1, sizes, 90, 10).expect_err("too random");
    assert!(error.to_string().contains("take 0 to 75"));
}
