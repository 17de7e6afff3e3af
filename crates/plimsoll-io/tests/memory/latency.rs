//! Time on the memory disk.

use plimsoll_io::{
    Buffer, Durability, Latency, LatencyPlan, MemoryOptions, NANOS_PER_MILLISECOND, OperationKind,
    Purpose, Random,
};

use crate::rig::{Rig, label};

fn rig_with(latency: LatencyPlan) -> Rig {
    Rig::new(MemoryOptions { latency, ..MemoryOptions::default() })
}

/// Kinds and purposes have their own latency, and virtual time shows exactly that.
#[test]
fn operations_take_their_latency() {
    let plan = LatencyPlan::of(Latency::Constant(100))
        .with_kind(OperationKind::SyncFile, Latency::Constant(3000))
        .with_purpose(Purpose::DatabaseWrite, Latency::Constant(70));
    let rig = rig_with(plan);
    let start = rig.disk.clock().now();
    let file = rig.settled_file("a", 512);
    assert_eq!(rig.disk.clock().now() - start, 70, "opening carries the purpose of the label");
    rig.sync(&file);
    assert_eq!(rig.disk.clock().now() - start, 3070);
}

/// With one server two operations submitted together take twice as long.
#[test]
fn servers_make_a_queue() {
    for (servers, expected_ns) in [(1, 400), (2, 200), (4, 100), (8, 100)] {
        let rig = rig_with(LatencyPlan::of(Latency::Constant(100)).with_servers(servers));
        let file = rig.settled_file("a", 4096);
        let start = rig.disk.clock().now();
        rig.run(async move {
            let writes: Vec<_> = (0..4)
                .map(|index| {
                    file.write(index * 512, Buffer::zeroed(512), Durability::Volatile, label())
                })
                .collect();
            for write in writes {
                write.await.unwrap();
            }
        });
        assert_eq!(rig.disk.clock().now() - start, expected_ns, "{servers} servers");
    }
}

/// The samples have the mean they are asked to have; a wrong logarithm shows here.
#[test]
fn distributions_have_their_mean() {
    let cases = [
        (Latency::Uniform(1000, 3000), 2000.0),
        (Latency::Exponential { fixed_ns: 500, mean_ns: NANOS_PER_MILLISECOND }, 1_000_500.0),
        (Latency::Spiky { usual_ns: 100, rare_ns: 10_100, one_in: 10 }, 1100.0),
    ];
    for (latency, mean_ns) in cases {
        let mut random = Random::from_seed(7);
        let samples = 200_000;
        let sum: u64 = (0..samples).map(|_| latency.sample(&mut random)).sum();
        let ratio = sum as f64 / samples as f64 / mean_ns;
        assert!((ratio - 1.0).abs() < 0.02, "{latency:?}: {ratio}");
    }
}

/// An exponential time is below its median half of the time: the shape, not only the mean.
#[test]
fn exponential_has_its_median() {
    let latency = Latency::Exponential { fixed_ns: 0, mean_ns: 1_000_000 };
    let mut random = Random::from_seed(8);
    let below = (0..100_000).filter(|_| latency.sample(&mut random) < 693_147).count();
    assert!((49_000..51_000).contains(&below), "{below}");
}
