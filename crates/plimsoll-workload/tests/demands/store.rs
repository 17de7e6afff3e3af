//! What a store holds and what its customers do follows from a seed and has the published
//! distributions: otherwise its orders per minute could not be held against those of others.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_io::{NANOS_PER_SECOND, Nanos, Random};
use plimsoll_workload::store::{
    Catalogue, Entrance, FIRST_NAMES, LAST_NAMES, Scale, SearchBy, Step, StoreDemand, StoreHabits,
    StoreTask, WORDS, ceiling_opm, expected_rollback_share, first_name, is_hot, last_name, opm,
    word,
};
use plimsoll_workload::{Demand, Done, Seen};

fn small() -> Catalogue {
    Catalogue::new(7, Scale::SMALL)
}

fn demand(seed: u64, habits: StoreHabits) -> StoreDemand {
    StoreDemand::new(Random::from_seed(seed), habits, &small(), 3)
}

fn tasks(seed: u64, count: usize) -> Vec<StoreTask> {
    let mut demand = demand(seed, StoreHabits::USUAL);
    let next = |_| demand.next(0, None).expect("a store never closes").task;
    (0..count).map(next).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// More megabytes never mean fewer rows, as they do in the original between 999 MB and 2 GB; where
/// it has sizes of its own, they agree.
#[test]
fn sizes_follow_one_rule_that_never_falls() {
    let of = |text: &str| text.parse::<Scale>().expect("a size");
    let rows = |scale: Scale| [scale.customers(), scale.products(), scale.orders()];
    assert_eq!(rows(of("S")), [20_000, 10_000, 12_000]);
    assert_eq!(rows(of("M")), [2_000_000, 100_000, 1_200_000]);
    assert_eq!(of("L").customers(), 200_000_000);
    assert_eq!(rows(of("250GB"))[0], 500_000_000);
    assert_eq!([of("m"), of(" 1000 MB"), of("1gb")], [of("M"); 3]);
    let mut before = [0; 3];
    for megabytes in (1..3000).chain([250_000, 1_000_000]) {
        let now = rows(Scale::of_megabytes(megabytes).expect("a size"));
        assert!(now.iter().zip(before).all(|(now, before)| *now >= before));
        before = now;
    }
    for wrong in
        ["", "0MB", "-1GB", "10", "1.5GB", "MB", "XL", "1001GB", "99999999999999999999GB", "+1GB"]
    {
        let error = wrong.parse::<Scale>().expect_err(wrong).to_string();
        assert!(error.contains("write S, M, L"), "{error}");
    }
    assert_eq!([of("500MB").to_string(), of("L").to_string()], ["500MB", "100GB"]);
}

/// Full-text searches would find too much if words were alike, and nothing in databases that leave
/// short words out.
#[test]
fn words_differ_and_are_long_enough() {
    let lists = [
        (0..WORDS).map(word).collect::<Vec<_>>(),
        (0..FIRST_NAMES).map(first_name).collect(),
        (0..LAST_NAMES).map(last_name).collect(),
    ];
    let all: BTreeSet<&String> = lists.iter().flatten().collect();
    assert_eq!(all.len() as u64, WORDS + FIRST_NAMES + LAST_NAMES);
    assert!(all.iter().all(|word| word.len() >= 4));
}

/// Every backend fills its tables with these rows: they may depend on the seed and nothing else.
#[test]
fn rows_are_functions_of_seed_and_number() {
    let (one, again, other) = (small(), small(), Catalogue::new(8, Scale::SMALL));
    for id in [1, 77, 10_000] {
        assert_eq!(one.customer(id), again.customer(id));
        assert_eq!(one.product(id), again.product(id));
        assert_eq!(one.order(id), again.order(id));
        assert_eq!(one.stock(id), again.stock(id));
        assert_ne!(one.customer(id).last_name, other.customer(id).last_name);
    }
    let titles: BTreeSet<String> = (1..=10_000).map(|id| one.product(id).title).collect();
    assert_eq!(titles.len(), 10_000);
    let million = Catalogue::new(7, "L".parse().expect("a size"));
    assert_ne!(million.product(1).title, million.product(1_000_001).title);
}

/// The rollback rate and the cost of searches follow from these distributions.
#[test]
fn rows_are_distributed_as_published() {
    let store = small();
    let products: Vec<_> = (1..=10_000).map(|id| store.product(id)).collect();
    let share = |count: usize| count as f64 / 10_000.0;
    let special = share(products.iter().filter(|product| product.is_special).count());
    assert!((special - 0.01).abs() < 0.004, "{special}");
    for category in 1..=16 {
        let found = share(products.iter().filter(|product| product.category == category).count());
        assert!((found - 1.0 / 16.0).abs() < 0.012, "{category}: {found}");
    }
    assert!(products.iter().all(|product| (999..=2999).contains(&product.price_cents)));
    let ordinary = (1..=10_000).filter(|id| !is_hot(*id));
    let stock = mean(ordinary.clone().map(|id| f64::from(store.stock(id))));
    assert!((stock - 250.0).abs() < 6.0, "{stock}");
    assert!(ordinary.clone().all(|id| store.stock(id) <= 500));
    let scarce = ordinary.filter(|id| store.stock(*id) < 3).count();
    assert!((30..=95).contains(&scarce), "{scarce}: 3 of 501 stocks are below 3");
    let orders: Vec<_> = (1..=12_000).map(|id| store.order(id)).collect();
    let lines = mean(orders.iter().map(|order| order.lines.len() as f64));
    assert!((lines - 5.0).abs() < 0.1, "{lines}");
    assert!(orders.iter().all(|order| (1..=9).contains(&order.lines.len())));
    assert!(orders.iter().all(|order| (1..=40_000).contains(&order.net_cents)));
    assert_eq!((orders[0].day, orders[11_999].day), (0, 364));
    let sold: u64 = store.sales().iter().map(|units| u64::from(*units)).sum();
    let ordered = orders.iter().flat_map(|order| &order.lines).map(|line| u64::from(line.quantity));
    assert_eq!(sold, ordered.sum::<u64>(), "the audit begins with both sums equal");
    let [home, abroad] = [store.customer(10_000), store.customer(10_001)];
    assert_eq!((home.region, abroad.region), (1, 2));
    assert!(home.state.is_some() && abroad.state.is_none());
}

/// Orders per minute of two tools compare only if a customer does as much in both.
#[test]
fn customers_do_as_much_as_published() {
    let tasks = tasks(1, 40_000);
    let new = tasks.iter().filter(|task| matches!(task.entrance, Entrance::SignUp { .. }));
    assert!((new.count() as f64 / 40_000.0 - 0.2).abs() < 0.01);
    let searches = mean(tasks.iter().map(|task| task.searches.len() as f64));
    assert!((searches - 3.0).abs() < 0.03, "{searches}");
    assert!(tasks.iter().all(|task| (1..=5).contains(&task.searches.len())));
    let rows =
        mean(tasks.iter().flat_map(|task| &task.searches).map(|search| f64::from(search.limit)));
    assert!((rows - 5.0).abs() < 0.03, "{rows}");
    let mut kinds = [0.0; 3];
    for search in tasks.iter().flat_map(|task| &task.searches) {
        kinds[match search.by {
            SearchBy::Category(category) => {
                assert!((1..=16).contains(&category));
                0
            }
            SearchBy::Actor(_) => 1,
            SearchBy::Title(_) => 2,
        }] += 1.0;
    }
    let all: f64 = kinds.iter().sum();
    assert!(kinds.iter().all(|kind| (kind / all - 1.0 / 3.0).abs() < 0.01), "{kinds:?}");
    let lines = mean(tasks.iter().map(|task| task.lines.len() as f64));
    assert!((lines - 5.0).abs() < 0.05, "{lines}");
    assert!(tasks.iter().all(|task| (1..=9).contains(&task.lines.len())));
    let mut drawn: BTreeMap<u64, f64> = BTreeMap::new();
    for line in tasks.iter().flat_map(|task| &task.lines) {
        assert!((1..=3).contains(&line.quantity));
        *drawn.entry(line.product).or_default() += 1.0;
    }
    assert!(drawn.keys().all(|product| (1..=10_000).contains(product)));
    let ordinary = drawn.values().sum::<f64>() / 10_009.0;
    let hot = drawn[&10_000] / ordinary;
    assert!((hot - 10.0).abs() < 2.5, "the hot product sold {hot} times as well");
}

/// Names that are used up were the worst fault of the original: after a minute its rate fell by a
/// third.
#[test]
fn sign_ups_never_share_a_name() {
    let store = small();
    let mut names = BTreeSet::new();
    for run in 1..3 {
        for session in 0..20 {
            for number in 0..50 {
                let customer = store.new_customer(run, session, number);
                assert!(customer.username.len() <= 50);
                assert!(names.insert(customer.username));
            }
        }
    }
    let numbers: Vec<_> = tasks(4, 500)
        .into_iter()
        .filter_map(|task| match task.entrance {
            Entrance::SignUp { number } => Some((task.session, number)),
            Entrance::Login { .. } => None,
        })
        .collect();
    assert!(numbers.iter().zip(0..).all(|(found, number)| *found == (3, number)));
}

/// The ceiling holds only if sessions think as long as it says, from the end of one order to the
/// intended start of the next.
#[test]
fn sessions_think_uniformly_and_orders_do_not_depend_on_it() {
    let habits = StoreHabits { think_s: 1.5, ..StoreHabits::USUAL };
    let mut thinking = demand(5, habits);
    let mut thought: Vec<Nanos> = Vec::new();
    let mut orders = Vec::new();
    let mut seen: Option<(Nanos, StoreTask)> = None;
    for _ in 0..20_000 {
        let last = seen.as_ref().map(|(finished, task)| Seen {
            intended: 0,
            finished: *finished,
            task,
            done: Done::RolledBack,
        });
        let finished = seen.as_ref().map_or(0, |(finished, _)| *finished);
        let step = thinking.next(finished, last).expect("a task");
        thought.push(step.intended - finished);
        orders.push(step.task.clone());
        seen = Some((step.intended + NANOS_PER_SECOND / 10, step.task));
    }
    let seconds = |ns: &Nanos| *ns as f64 / NANOS_PER_SECOND as f64;
    let average = mean(thought.iter().map(seconds));
    assert!((average - 1.5).abs() < 0.03, "{average}");
    assert!(thought.iter().all(|ns| seconds(ns) < 3.0));
    let square = mean(thought.iter().map(|ns| (seconds(ns) - average).powi(2)));
    assert!((square - 0.75).abs() < 0.03, "the variance of uniform 0 to 3 is 0.75, not {square}");
    assert_eq!(orders[..100], tasks(5, 100));
}

/// A conflict that the service hands back is the same order again in time.
#[test]
fn what_came_to_nothing_is_still_due_when_it_was() {
    let mut demand = demand(6, StoreHabits { think_s: 2.0, ..StoreHabits::USUAL });
    let first = demand.next(50, None).expect("a task");
    let again = demand.next(
        90,
        Some(Seen { intended: 42, finished: 90, task: &first.task, done: Done::Conflict }),
    );
    assert_eq!(again.expect("a task").intended, 42);
}

/// The published ceilings: 20 threads at 1.5 s make 800, 50 make 2,000, and an order that takes
/// time takes it from them.
#[test]
fn the_formulas_give_the_published_figures() {
    assert_eq!(ceiling_opm(20, 1.5, 0.0), 800.0);
    assert_eq!(ceiling_opm(50, 1.5, 0.0), 2000.0);
    assert!((ceiling_opm(20, 1.5, 0.079) - 760.0).abs() < 0.5);
    assert!((ceiling_opm(50, 1.5, 0.0974) - 1878.0).abs() < 0.5);
    assert_eq!([opm(799, 60.0), opm(1, 61.0), opm(5, 0.0)], [799, 0, 0]);
    let share = expected_rollback_share(5, 10);
    assert!((0.019..0.0205).contains(&share), "{share}");
}

/// Impossible habits are told by name.
#[test]
fn impossible_habits_are_refused() {
    let check = |change: &dyn Fn(&mut StoreHabits)| {
        let mut habits = StoreHabits::USUAL;
        change(&mut habits);
        habits.check().expect_err("it is impossible")
    };
    assert!(check(&|habits| habits.think_s = -1.0).contains("think_s"));
    assert!(check(&|habits| habits.think_s = f64::NAN).contains("think_s"));
    assert!(
        check(&|habits| habits.new_customers_percent = 101.0).contains("new_customers_percent")
    );
    assert!(check(&|habits| habits.lines_mean = 0).contains("lines_mean"));
    assert_eq!(StoreHabits::USUAL.check(), Ok(()));
}

/// Reviews follow from seed and number, and are spread as in DVD Store 3.
#[test]
fn reviews_are_distributed_as_published() {
    let catalogue = small().with_reviews(4_000);
    assert_eq!(catalogue.review(7), small().with_reviews(4_000).review(7));
    let reviews: Vec<_> = (1..=4_000).map(|id| catalogue.review(id)).collect();
    let near = |found: f64, wanted: f64, within: f64| {
        assert!((found - wanted).abs() < within, "{found}, not {wanted}");
    };
    near(mean(reviews.iter().map(|review| f64::from(review.says.stars))), 3.0, 0.1);
    let words = |text: &str| text.split(' ').count();
    assert!(reviews.iter().all(|review| words(&review.says.summary) == 3));
    assert!(reviews.iter().all(|review| (6..=129).contains(&words(&review.says.text))));
    assert!(reviews.iter().all(|review| review.says.text.len() <= 1_000));
    near(mean(reviews.iter().map(|review| words(&review.says.text) as f64)), 67.5, 2.5);
    let ratings: Vec<_> = (1..=4_000).map(|id| catalogue.ratings(id)).collect();
    assert!(ratings.iter().all(|all| (2..=39).contains(&all.len())));
    near(mean(ratings.iter().map(|all| all.len() as f64)), 20.5, 0.6);
    assert!(ratings.iter().flatten().all(|one| (1..=10).contains(one)));
    let members = (1..=2_000).filter(|customer| catalogue.member_level(*customer).is_some());
    assert_eq!(members.count(), 200);
    assert_eq!(small().member_level(10), None, "version 2 has none");
}

/// What is done with reviews is drawn apart: customers order the same in both versions.
#[test]
fn reviews_change_no_order_and_are_as_many_as_published() {
    let of = |catalogue: Catalogue| {
        let random = Random::from_seed(3);
        let mut demand = StoreDemand::new(random, StoreHabits::USUAL, &catalogue, 1);
        let next = |_| demand.next(0, None).expect("a store never closes").task;
        (0..4_000).map(next).collect::<Vec<_>>()
    };
    let (second, third) = (of(small()), of(small().with_reviews(5_000)));
    for (old, new) in second.iter().zip(&third) {
        assert!(old.errands.is_empty());
        assert_eq!(StoreTask { errands: Vec::new(), ..new.clone() }, *old);
    }
    let share = |step: Step| {
        let found = third.iter().flat_map(|task| &task.errands);
        found.filter(|errand| errand.step() == step).count() as f64 / third.len() as f64
    };
    for (step, wanted, within) in [
        (Step::Join, 0.01, 0.006),
        (Step::FindReviews, 3.0, 0.1),
        (Step::ReadReviews, 3.0, 0.1),
        (Step::WriteReview, 0.05, 0.012),
        (Step::RateReview, 0.10, 0.016),
    ] {
        let found = share(step);
        assert!((found - wanted).abs() < within, "{step:?}: {found}, not {wanted}");
    }
}
