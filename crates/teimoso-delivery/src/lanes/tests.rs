//! Turns, shares, pauses and the horizon, seen from outside.

use std::time::Duration;

use super::*;

fn at(ms: u64) -> Millis {
    Millis::new(ms)
}

fn lanes(limits: Limits, names: &[(&str, &str)]) -> Lanes<u32> {
    let mut lanes = Lanes::new(limits);
    for (application, address) in names {
        let key =
            LaneKey { application: Application::parse(application).unwrap(), address: (*address).into() };
        let id = lanes.next_id().unwrap();
        lanes.open(id, key, LaneRecord::default(), Horizon::All);
    }
    lanes
}

fn keys(taken: &[Taken<u32>]) -> Vec<u32> {
    taken.iter().map(|taken| taken.key).collect()
}

#[test]
fn g9_turns_go_between_applications_then_lanes() {
    let mut lanes = lanes(Limits::default(), &[("a", "1"), ("a", "2"), ("b", "3")]);
    for n in 0..4 {
        for lane in 0..3 {
            lanes.push(LaneId(lane), at(0), lane * 10 + n, at(0));
        }
    }
    assert_eq!(keys(&lanes.take(at(0), 8, 1000)), [0, 20, 10, 21, 1, 22, 11, 23]);
}

#[test]
fn g9_a_lane_holds_sixteen_or_half_of_the_free_slots_and_never_none() {
    for (free, held) in [(1024, 16), (20, 10), (3, 1), (1, 1), (0, 1)] {
        let mut lanes = lanes(Limits::default(), &[("a", "1")]);
        for n in 0..100 {
            lanes.push(LaneId(0), at(0), n, at(0));
        }
        assert_eq!(lanes.take(at(0), 100, free).len(), held, "{free} free");
    }
}

#[test]
fn a_lane_held_back_by_its_share_goes_on_when_slots_come_free() {
    let mut lanes = lanes(Limits::default(), &[("a", "1")]);
    for n in 0..10 {
        lanes.push(LaneId(0), at(0), n, at(0));
    }
    assert_eq!(lanes.take(at(0), 10, 4).len(), 2);
    assert_eq!(lanes.take(at(0), 10, 20).len(), 8);
}

#[test]
fn g8_nothing_is_taken_early_and_the_next_wake_is_named() {
    let mut lanes = lanes(Limits::default(), &[("a", "1")]);
    lanes.push(LaneId(0), at(50), 1, at(0));
    assert_eq!(keys(&lanes.take(at(49), 9, 100)), [] as [u32; 0]);
    assert_eq!(lanes.next_wake(), Some(at(50)));
    lanes.push(LaneId(0), at(20), 2, at(0));
    assert_eq!(lanes.next_wake(), Some(at(20)));
    assert_eq!(keys(&lanes.take(at(50), 9, 100)), [2, 1]);
    assert_eq!(lanes.next_wake(), None);
}

#[test]
fn g10_a_paused_lane_burns_no_attempts_and_comes_back_with_one_probe() {
    let mut lanes = lanes(Limits::default(), &[("a", "1")]);
    for n in 0..9 {
        lanes.push(LaneId(0), at(0), n, at(0));
    }
    assert_eq!(lanes.take(at(0), 1, 100).len(), 1);
    assert!(lanes.release(LaneId(0), LaneNews::Pause(at(30_000)), at(1)).is_some());
    assert_eq!(lanes.take(at(29_999), 9, 100).len(), 0);
    assert_eq!(lanes.next_wake(), Some(at(30_000)));
    assert_eq!(lanes.take(at(30_000), 9, 100).len(), 1);
    lanes.release(LaneId(0), LaneNews::Success, at(30_001));
    assert_eq!(lanes.take(at(30_001), 9, 100).len(), 2);
}

#[test]
fn a_cancelled_entry_is_gone() {
    let mut lanes = lanes(Limits::default(), &[("a", "1")]);
    lanes.push(LaneId(0), at(0), 1, at(0));
    assert!(lanes.remove(LaneId(0), at(0), 1, at(0)));
    assert!(!lanes.remove(LaneId(0), at(0), 1, at(0)));
    assert_eq!(lanes.take(at(9), 9, 100), []);
}

#[test]
fn past_the_limit_a_lane_is_named_by_its_origin() {
    let limits = Limits { max_url_lanes: 1, ..Limits::default() };
    let lanes = lanes(limits, &[("a", "http://x/1")]);
    let to = |path: &str| Destination { url: path.into(), lane: path.into(), origin: "http://x".into() };
    let a = Application::parse("a").unwrap();
    assert_eq!(&*lanes.choose(&a, &to("http://x/1")).address, "http://x/1");
    assert_eq!(&*lanes.choose(&a, &to("http://x/2")).address, "http://x");
}

#[test]
fn memory_is_bounded_and_the_rest_is_read_on_in_order() {
    let limits = Limits { memory_per_lane: 8, ..Limits::default() };
    let mut lanes = lanes(limits, &[("a", "1")]);
    let stored: Vec<_> = (0..100u32).map(|n| (at(u64::from(n)), n)).collect();
    for (due, key) in &stored {
        lanes.push(LaneId(0), *due, *key, at(1000));
    }
    let mut seen = Vec::new();
    while seen.len() < 100 {
        for thirst in lanes.take_thirsty(9) {
            let Horizon::UpTo(due, key) = thirst.horizon else { unreachable!("all was pushed") };
            let beyond: Vec<_> =
                stored.iter().copied().filter(|e| *e > (due, key)).take(thirst.want).collect();
            let end = (beyond.len() == thirst.want).then(|| beyond[beyond.len() - 1]);
            lanes.refill(&thirst, &beyond, end, at(1000));
        }
        let taken = lanes.take(at(1000), 3, 100);
        assert!(!taken.is_empty());
        seen.extend(keys(&taken));
        for taken in taken {
            lanes.release(taken.lane, LaneNews::Neutral, at(1000));
        }
    }
    assert_eq!(seen, (0..100).collect::<Vec<_>>());
}

#[test]
fn a_lane_whose_last_entry_in_memory_is_cancelled_is_read_on() {
    let mut lanes = lanes(Limits { memory_per_lane: 1, ..Limits::default() }, &[("a", "1")]);
    for n in 0..3 {
        lanes.push(LaneId(0), at(n.into()), n, at(9));
    }
    assert!(!lanes.is_thirsty());
    assert!(lanes.remove(LaneId(0), at(0), 0, at(9)));
    let thirst = lanes.take_thirsty(9);
    assert_eq!(thirst, [Thirst { lane: LaneId(0), horizon: Horizon::UpTo(at(0), 0), want: 1 }]);
    lanes.refill(&thirst[0], &[(at(1), 1)], Some((at(1), 1)), at(9));
    assert_eq!(keys(&lanes.take(at(9), 9, 100)), [1]);
}

#[test]
fn g9_a_hanging_lane_leaves_the_others_their_turns() {
    let mut lanes = lanes(Limits::default(), &[("a", "hangs"), ("a", "works")]);
    for n in 0..10_000 {
        lanes.push(LaneId(0), at(0), n, at(0));
    }
    assert_eq!(lanes.take(at(0), 64, 1024).len(), 16);
    let now = at(0).after(Duration::from_secs(1));
    lanes.push(LaneId(1), now, 20_000, now);
    assert_eq!(keys(&lanes.take(now, 64, 1008)), [20_000]);
}

#[test]
fn idle_lanes_are_closed_when_there_are_many_and_busy_ones_stay() {
    let limits = Limits { max_url_lanes: 4, ..Limits::default() };
    let mut lanes = lanes(limits, &[("a", "idle"), ("a", "due"), ("a", "paused"), ("a", "leased")]);
    lanes.push(LaneId(1), at(50), 1, at(0));
    lanes.release(LaneId(2), LaneNews::Pause(at(99)), at(0));
    assert_eq!(lanes.close_idle(|id| id == LaneId(3)), 1);
    let open: Vec<bool> = lanes.ids().map(|id| lanes.is_open(id)).collect();
    assert_eq!(open, [false, true, true, true]);
    assert_eq!((lanes.len(), lanes.next_id()), (3, Some(LaneId(4))));
    assert_eq!(keys(&lanes.take(at(50), 9, 100)), [1]);
}

#[test]
fn few_lanes_are_never_closed() {
    let mut lanes = lanes(Limits::default(), &[("a", "idle")]);
    assert_eq!(lanes.close_idle(|_| false), 0);
}

#[test]
fn g9_however_many_lanes_hang_a_healthy_one_finds_slots() {
    let names: Vec<String> = (0..65).map(|n| format!("http://{n}")).collect();
    let names: Vec<(&str, &str)> = names.iter().map(|name| ("a", name.as_str())).collect();
    let mut lanes = lanes(Limits::default(), &names);
    for n in 0..64 {
        (0..100).for_each(|key| lanes.push(LaneId(n), at(0), n * 1_000 + key, at(0)));
    }
    let mut held = 0;
    loop {
        let free = 1_024 - held;
        match lanes.take(at(0), free.min(256), free).len() {
            0 => break,
            taken => held += taken,
        }
    }
    assert!(held >= 850, "{held} are put to use");
    let free = 1_024 - held;
    lanes.push(LaneId(64), at(1), 99_999, at(1));
    assert_eq!(keys(&lanes.take(at(1), free.min(256), free)), [99_999]);
}

#[test]
fn g9_more_hanging_lanes_than_slots_leave_some_to_those_that_answer() {
    let names: Vec<String> = (0..1_501).map(|n| format!("http://{n}")).collect();
    let names: Vec<(&str, &str)> = names.iter().map(|name| ("a", name.as_str())).collect();
    let mut lanes = lanes(Limits::default(), &names);
    let healthy = LaneId(1_500);
    lanes.push(healthy, at(0), 9_000, at(0));
    assert_eq!(keys(&lanes.take(at(0), 1, 1_024)), [9_000]);
    lanes.hear_answer(healthy, true);
    lanes.release(healthy, LaneNews::Neutral, at(0));
    (0..1_500).for_each(|n| lanes.push(LaneId(n), at(1), n, at(1)));
    let held = lanes.take(at(1), 1_024, 1_024).len();
    assert_eq!(held, 1_024 - 1_024 / 16 + 1);
    (0..16).for_each(|n| lanes.push(healthy, at(2), 9_001 + n, at(2)));
    assert_eq!(lanes.take(at(2), 1_024 - held, 1_024 - held).len(), 16);
}
