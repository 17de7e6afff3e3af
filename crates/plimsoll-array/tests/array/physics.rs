//! What no drive can escape: the media rate, the revolution, the arm.

use crate::support::*;
use plimsoll_array::Mechanics;
use plimsoll_array::source::StreamSpec;
use plimsoll_array::spec::{DriveKind, RaidLevel, Scheduling};

fn mechanics(rotation_rpm: f64) -> Mechanics {
    let drive = hdd(rotation_rpm);
    let DriveKind::Hdd(spec) = &drive.kind else { unreachable!() };
    Mechanics::new(drive.capacity_bytes, spec)
}

/// Reading in sequence runs at the media rate of the zone: a model that loses revolutions between
/// requests would report backups and checksums several times too slow.
#[test]
fn sequential_reads_run_at_the_media_rate() {
    // One request at a time has to be long enough to hide the next command behind the media.
    for (depth, bytes) in [(1, 256 * KIB), (4, 64 * KIB)] {
        let stream = sequential("scan", bytes, depth);
        let outcome = run(&simulation(one_drive(hdd(15_000.0)), vec![stream], 1, 20));
        let bytes_per_second = outcome.classes[0].bytes_per_second;
        // The scan stays in the outermost zones, whose rates lie between 96 and 100 % of the outer
        // rate.
        assert!(
            (0.95 * 204e6..204e6).contains(&bytes_per_second),
            "depth {depth}: {bytes_per_second}"
        );
    }
}

/// A sector read and written again comes round after exactly one revolution: this is what makes a
/// small RAID 5 write dearer than two operations.
#[test]
fn rewriting_what_was_just_read_costs_one_revolution() {
    for rotation_rpm in [7_200.0, 10_000.0, 15_000.0] {
        let mut array = build(&one_drive(hdd(rotation_rpm)), 7);
        let read = one(&mut array, request(3 * GB, 32 * KIB, false));
        let write = one(&mut array, request(3 * GB, 32 * KIB, true));
        let revolution_ns = mechanics(rotation_rpm).revolution_ns() as f64;
        check_near((write.completed - read.completed) as f64, revolution_ns, 0.001);
    }
}

/// SIM-01: faster drives serve random reads faster, and a lone random read costs seek, half a turn
/// and transfer.
#[test]
fn random_reads_cost_a_seek_and_half_a_turn() {
    let latency_ms = |rpm: f64| {
        let stream = random_reads(90 * GB, 1, 0.0);
        class(&run(&simulation(one_drive(hdd(rpm)), vec![stream], 5, 60)), "random").1
    };
    let full_span_ms = |rpm: f64| {
        let mut spec = one_drive(hdd(rpm));
        spec.volumes[0].capacity_bytes = 590 * GB;
        let stream = random_reads(589 * GB, 1, 0.0);
        class(&run(&simulation(spec, vec![stream], 5, 60)), "random").1
    };
    assert!(latency_ms(15_000.0) < latency_ms(10_000.0));
    assert!(latency_ms(10_000.0) < latency_ms(7_200.0));
    // Command 0.2, average seek 3.4 over the whole drive, half a revolution 2.0, 32 KiB at about
    // 160 MB/s 0.2.
    check_near(full_span_ms(15_000.0), 5.8, 0.05);
}

/// SIM-12: a tenth of the capacity at the outer rim is reached with short seeks.
#[test]
fn short_stroking_is_faster() {
    let at_span = |span: u64| {
        let mut spec = one_drive(hdd(7_200.0));
        spec.volumes[0].capacity_bytes = 590 * GB;
        class(&run(&simulation(spec, vec![random_reads(span, 4, 0.0)], 5, 60)), "random").0
    };
    let (short, full) = (at_span(59 * GB), at_span(589 * GB));
    assert!(short > 1.25 * full, "{short} against {full}");
}

/// A queue that picks the nearest operation doubles a drive's rate at depth; without it deep queues
/// gain nothing.
#[test]
fn deep_queues_pay_only_when_the_nearest_goes_first() {
    let at = |scheduling: Scheduling, depth: u32| {
        let mut drive = hdd(15_000.0);
        let DriveKind::Hdd(spec) = &mut drive.kind else { unreachable!() };
        spec.scheduling = scheduling;
        class(
            &run(&simulation(one_drive(drive), vec![random_reads(90 * GB, depth, 0.0)], 5, 30)),
            "random",
        )
        .0
    };
    let (one, deep) =
        (at(Scheduling::ShortestPositioning, 1), at(Scheduling::ShortestPositioning, 32));
    assert!((1.7..2.3).contains(&(deep / one)), "{deep} against {one}");
    let (one, deep) = (at(Scheduling::InOrder, 1), at(Scheduling::InOrder, 32));
    check_near(deep, one, 0.03);
}

/// However attractive others are, an operation is served in the end.
#[test]
fn no_operation_starves() {
    let outcome =
        run(&simulation(one_drive(hdd(7_200.0)), vec![random_reads(90 * GB, 64, 0.0)], 5, 60));
    assert!(outcome.classes[0].latency_ms_max < 2_000.0, "{}", outcome.classes[0].latency_ms_max);
}

/// A flash drive writes at the speed its dies can program, garbage collection included: with an
/// amplification of two, half as fast once the protected buffer is full.
#[test]
fn write_amplification_halves_the_sustained_write_rate() {
    let rate = |amplification: f64| {
        let mut spec = array(ssd(amplification), RaidLevel::Raid0, &[1]);
        if let DriveKind::Ssd(ssd) = &mut spec.drives[0].kind {
            ssd.bus_bytes_per_second = 5e9;
        }
        spec.members[0].cache.write_back = false;
        let outcome = run(&simulation(spec, vec![random_reads(90 * GB, 64, 1.0)], 3, 5));
        outcome.classes[0].bytes_per_second
    };
    let (one, two) = (rate(1.0), rate(2.0));
    // 64 dies program 16 KiB in 1.3 ms each, and erase once in 128 programs.
    check_near(one, 64.0 * 16_384.0 / (0.0013 + 0.0038 / 128.0), 0.05);
    // Each move reads as well as programs.
    check_near(two, 64.0 * 16_384.0 / (2.0 * 0.0013 + 0.000_075 + 2.0 * 0.0038 / 128.0), 0.05);
}

/// A lone flash read costs command, sensing, channel and bus.
#[test]
fn a_flash_read_costs_its_stages() {
    let mut array = build(&array(ssd(1.5), RaidLevel::Raid0, &[1]), 1);
    let read = one(&mut array, request(0, 16 * KIB, false));
    let expected = 30_000.0 + 75_000.0 + 16_384.0 / 200e6 * 1e9 + 16_384.0 / 550e6 * 1e9;
    check_near((read.completed - read.submitted) as f64, expected, 0.001);
}

/// Why: dies that were full were said to be half in use, because the time on the channel was left
/// out.
#[test]
fn saturated_dies_are_told_to_be_full() {
    for channel_bytes_per_second in [200e6, 800e6] {
        let mut drive = ssd(1.0);
        if let DriveKind::Ssd(ssd) = &mut drive.kind {
            ssd.channel_bytes_per_second = channel_bytes_per_second;
            ssd.bus_bytes_per_second = 55e9;
        }
        let StreamSpec::Closed(mut stream) = random_reads(90 * GB, 4096, 0.0) else {
            unreachable!("it is a closed stream")
        };
        stream.page_bytes = 16 * KIB;
        stream.request_bytes_mean = 16.0 * KIB as f64;
        let outcome = run(&simulation(one_drive(drive), vec![StreamSpec::Closed(stream)], 1, 1));
        let die_ns = 75_000.0 + 16_384.0 / channel_bytes_per_second * 1e9;
        let used = outcome.classes[0].per_second * die_ns / 64e9;
        assert!(used > 0.95, "{used}");
        check_near(outcome.array.drives[0].utilisation, used, 0.01);
    }
}
