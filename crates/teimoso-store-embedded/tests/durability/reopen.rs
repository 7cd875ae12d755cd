//! Everything survives a close, a drop and a kill; what was in flight is decided at the next start.

use std::time::Duration;

use teimoso_delivery::model::{DeadReason, DeliveryState, EventId, Header, Headers, NextWhy, PauseWhy};
use teimoso_delivery::store::{
    CancelOutcome, LEASE, LaneNews, NewReplay, Next, ReplayFilter, ReplayState, Store,
};
use teimoso_delivery::testkit::{Offer, offer};

use super::bench::{END_OF_CAUTION, ENDS, End, Home, Open, URL, again_at, ids, run};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// One delivery in every state that rests, with every field that an event can carry.
async fn history(open: &Open) {
    let at = |seconds| open.now().after(Duration::from_secs(seconds));
    let scheduled = offer("http://a.example/?q=1").named("pedido-1").key("k-1").kind("pedido.pago");
    open.one(scheduled.policy("webhook").payload(vec![0, 255, b'\n'])).await;
    let claimed = open.claim_one().await;
    open.finish(claimed, Next::Scheduled { due: at(9), why: NextWhy::RetryAfter }).await;
    for (url, next) in
        [("http://b.example/", Next::Delivered), ("http://c.example/", Next::Dead(DeadReason::Redirect))]
    {
        open.one(offer(url).of("loja-2")).await;
        let claimed = open.claim_one().await;
        open.finish(claimed, next).await;
    }
    let cancelled = open.one(offer(URL)).await;
    assert_eq!(open.store.cancel(cancelled).await, Ok(CancelOutcome::Cancelled));
    let mut event = offer(URL).deliver_at(at(60)).at_most_once().event();
    event.headers = Headers::new(vec![Header::new("x-loja", "1: 2").unwrap()]).unwrap();
    open.store.accept(vec![event]).await.unwrap().remove(0).unwrap();
    open.accept(offer(URL).nowhere().named("sem-destino")).await;
    open.one(offer(URL).payload("{\"a\":1e400,\"a\":1.0 }")).await;
}

#[test]
fn g1_g2_everything_reads_the_same_after_every_end() {
    for end in ENDS {
        run(async {
            let open = Home::new().open();
            history(&open).await;
            let before = open.picture().await;
            let open = open.again(end).await;
            assert_eq!(open.picture().await, before, "{end:?}");
            let open = open.again(End::Closed).await;
            assert_eq!(open.picture().await, before, "{end:?}, then closed");
        });
    }
}

#[test]
fn what_was_accepted_is_claimed_after_the_start_as_it_was_before() {
    for end in ENDS {
        run(async {
            let open = Home::new().open();
            let full = offer("http://a.example/?q=1").named("p-1").kind("k").policy("webhook");
            open.one(full.payload(vec![0, 255])).await;
            let open = open.again(end).await;
            let claimed = open.claim_one().await;
            let event = &claimed.event;
            assert_eq!((&*claimed.url, &*claimed.lane), ("http://a.example/?q=1", "http://a.example/"));
            assert_eq!((event.id.to_string(), &event.payload[..]), ("p-1".to_owned(), &[0, 255][..]));
            assert_eq!(event.policy.as_ref().map(|policy| policy.as_str()), Some("webhook"));
            assert_eq!(event.kind.as_ref().map(|kind| kind.as_str()), Some("k"));
        });
    }
}

#[test]
fn g1_a_key_answers_the_first_id_for_a_day_whatever_ends_in_between() {
    for end in ENDS {
        run(async {
            let open = Home::new().open();
            let first = open.accept(offer(URL).key("k")).await;
            for _ in 0..24 {
                open.pass(HOUR - SECOND);
                // A key of every hour, so that the lookup goes through many tables.
                open.accept(offer(URL).key(&open.now().to_string())).await;
            }
            let open = open.again(end).await;
            let repeated = open.accept(offer(URL).key("k")).await;
            assert_eq!((repeated.event, repeated.replayed), (first.event.clone(), true), "{end:?}");
            open.pass(2 * HOUR);
            let later = open.accept(offer(URL).key("k")).await;
            assert_ne!(later.event, first.event);
            assert!(!later.replayed);
        });
    }
}

#[test]
fn a_callers_id_finds_its_event_after_the_day_in_which_it_is_recognised() {
    for end in ENDS {
        run(async {
            let open = Home::new().open();
            open.accept(offer(URL).named("p-1").payload("first")).await;
            open.pass(30 * HOUR);
            open.nudge().await;
            let open = open.again(end).await;
            let id = EventId::named("p-1").unwrap();
            let payload = open.store.payload(id.clone()).await.unwrap().unwrap().1;
            assert_eq!(&payload[..], b"first");
            let second = open.accept(offer(URL).named("p-1").payload("second").fingerprint(2)).await;
            assert_eq!((second.event, second.replayed), (id.clone(), false));
            let open = open.again(end).await;
            assert_eq!(
                &open.store.payload(id).await.unwrap().unwrap().1[..],
                b"second",
                "the newest is meant"
            );
        });
    }
}

#[test]
fn g10_a_pause_and_the_probe_after_it_survive() {
    for end in ENDS {
        run(async {
            let open = Home::new().open();
            open.many(3, &offer(URL)).await;
            let until = open.now().after(60 * SECOND);
            let claimed = open.claim_one().await;
            let paused = open.settle(claimed, again_at(open.now()), LaneNews::Pause(until)).await;
            assert_eq!((paused[0].until, paused[0].why), (until, PauseWhy::RetryAfter));
            let open = open.again(end).await;
            let claim = open.ask(9).await.unwrap();
            assert_eq!((claim.taken.len(), claim.wake_at), (0, Some(until)), "{end:?}");
            assert_eq!(open.stats().await.oldest_due, Some(until));
            open.pass(60 * SECOND);
            assert_eq!(open.claim(9).await.len(), 1, "one probe");
        });
    }
}

#[test]
fn g10_the_breaker_goes_on_doubling() {
    for end in ENDS {
        run(async {
            let mut open = Home::new().open();
            open.many(20, &offer(URL)).await;
            let mut pauses = Vec::new();
            while pauses.len() < 3 {
                let claimed = open.claim_one().await;
                let settled_at = open.now();
                let paused = open.settle(claimed, again_at(settled_at), LaneNews::Failure).await;
                open.pass(4 * SECOND);
                for pause in paused {
                    assert_eq!(pause.why, PauseWhy::Breaker);
                    pauses.push(pause.until.since(settled_at).as_secs());
                    open.pass(pause.until.since(open.now()));
                    open = open.again(end).await;
                }
            }
            assert_eq!(pauses, [30, 60, 120], "{end:?}");
        });
    }
}

#[test]
fn g8_the_schedule_keeps_its_order_also_when_memory_is_short() {
    for end in ENDS {
        run(async {
            let mut home = Home::new();
            home.limits.memory_per_lane = 4;
            let open = home.open();
            let mut expected = Vec::new();
            for n in 0..40u64 {
                let due = open.now().after(Duration::from_millis(1 + n * 7_919 % 1_000));
                expected.push((due, open.one(offer(URL).deliver_at(due)).await));
            }
            expected.sort_unstable();
            let open = open.again(end).await;
            assert_eq!(open.ask(9).await.unwrap().wake_at, Some(expected[0].0));
            open.pass(SECOND);
            let mut claimed = Vec::new();
            while claimed.len() < 40 {
                let one = open.claim_one().await;
                claimed.push((one.due, one.lease.delivery()));
                open.finish(one, Next::Delivered).await;
            }
            assert_eq!(claimed, expected, "{end:?}");
        });
    }
}

#[test]
fn a_replay_job_goes_on_where_it_was() {
    for end in ENDS {
        run(async {
            let open = Home::new().open();
            open.many(6, &offer(URL)).await;
            open.finish_all(Next::Dead(DeadReason::AttemptsExhausted)).await;
            let order = NewReplay { filter: ReplayFilter::default(), rate: 2, dry_run: false };
            let job = open.store.start_replay(order).await.unwrap();
            let id = job.id.unwrap();
            open.pass(SECOND);
            open.nudge().await;
            let halfway = open.store.replay(id).await.unwrap().unwrap();
            assert_eq!(halfway.state, ReplayState::Running);
            assert!((1..=4).contains(&halfway.done), "{halfway:?}");
            let replayed = ids(&open.claim(9).await);
            assert_eq!(replayed.len() as u64, halfway.done);
            let open = open.again(end).await;
            let mut seen = replayed;
            while open.store.replay(id).await.unwrap().unwrap().state == ReplayState::Running {
                open.pass(SECOND);
                open.nudge().await;
            }
            let ended = open.store.replay(id).await.unwrap().unwrap();
            assert_eq!((ended.state, ended.done, ended.failed), (ReplayState::Finished, 6, 0), "{end:?}");
            seen.extend(ids(&open.claim(9).await));
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 6, "each is due again");
            assert_eq!(open.counts().await.dead, 0);
        });
    }
}

#[test]
fn a_wish_to_cancel_in_flight_is_honoured_at_the_next_start() {
    for end in ENDS {
        run(async {
            let open = Home::new().open();
            let id = open.one(offer(URL)).await;
            open.claim_one().await;
            assert_eq!(open.store.cancel(id).await, Ok(CancelOutcome::Requested));
            let open = open.again(end).await;
            assert_eq!(open.view(id).await.state, DeliveryState::Cancelled, "{end:?}");
            assert_eq!(open.claim(9).await.len(), 0);
            assert_eq!(open.counts().await.cancelled, 1);
        });
    }
}

#[test]
fn g4_what_was_started_at_most_once_is_dead_ambiguous_at_the_next_start() {
    for end in ENDS {
        run(async {
            let open = Home::new().open();
            let id = open.one(offer(URL).at_most_once()).await;
            open.claim_one().await;
            let open = open.again(end).await;
            let view = open.view(id).await;
            assert_eq!(
                (view.state, view.reason),
                (DeliveryState::Dead, Some(DeadReason::Ambiguous)),
                "{end:?}"
            );
            assert_eq!(open.claim(9).await.len(), 0);
        });
    }
}

#[test]
fn g6_the_third_death_in_flight_is_poison() {
    run(async {
        let mut open = Home::new().open();
        let id = open.one(offer(URL)).await;
        for recoveries in 0..3 {
            let claimed = open.claim_one().await;
            assert_eq!((claimed.progress.recoveries, claimed.progress.attempts), (recoveries, 0));
            open.journal().await;
            open = open.again(End::Killed).await;
        }
        let view = open.view(id).await;
        assert_eq!((view.state, view.reason), (DeliveryState::Dead, Some(DeadReason::Poison)));
        assert_eq!(open.home.number("SELECT count(*) FROM leased"), 0);
        assert_eq!(open.home.number("SELECT count(*) FROM due"), 0);
    });
}

#[test]
fn g3_what_was_leased_is_due_at_once_at_the_next_start() {
    for end in ENDS {
        run(async {
            let open = Home::new().open();
            let accepted = open.many(3, &offer(URL)).await;
            open.claim(2).await;
            let open = open.again(end).await;
            assert_eq!(ids(&open.claim(9).await), accepted, "{end:?}");
        });
    }
}

#[test]
fn g6_after_a_kill_a_claim_is_journaled_before_it_is_returned() {
    run(async {
        let mut open = Home::new().open();
        open.one(offer(URL)).await;
        open.claim_one().await;
        open = open.again(End::Killed).await;
        // The first life ended cleanly so far: its claim had no time to be journaled.
        assert_eq!(open.claim_one().await.progress.recoveries, 0);
        // This life began after a kill: nothing passes between the claim and the next one.
        open = open.again(End::Killed).await;
        assert_eq!(open.claim_one().await.progress.recoveries, 1);
        open = open.again(End::Closed).await;
        assert_eq!(open.claim_one().await.progress.recoveries, 2);
    });
}

#[test]
fn g6_caution_ends_after_a_minute_and_with_a_clean_end() {
    run(async {
        let mut open = Home::new().open().again(End::Killed).await;
        open.one(offer(URL)).await;
        open.pass(END_OF_CAUTION);
        open.claim_one().await;
        assert_eq!(
            open.home.number("SELECT count(*) FROM leased"),
            0,
            "a minute later claims are quick again"
        );
        open = open.again(End::Closed).await;
        open.claim_one().await;
        assert_eq!(open.home.number("SELECT count(*) FROM leased"), 0, "nothing to be cautious of");
    });
}

#[test]
fn g6_a_lease_is_journaled_also_when_the_wall_clock_steps_back() {
    run(async {
        let open = Home::new().open();
        open.one(offer(URL)).await;
        open.claim_one().await;
        open.nudge().await;
        open.home.clock.step_back(HOUR);
        open.nudge().await;
        assert_eq!(open.home.number("SELECT count(*) FROM leased"), 1);
    });
}

#[test]
fn ids_are_never_given_out_twice_when_the_clock_steps_back_between_two_runs() {
    for end in ENDS {
        run(async {
            let open = Home::new().open();
            let mut seen = open.many(3, &offer(URL)).await;
            let home = open.end(end).await;
            home.clock.step_back(HOUR);
            let open = home.open();
            let old = seen.clone();
            seen.extend(open.many(3, &offer(URL)).await);
            for id in &old {
                assert_eq!(open.view(*id).await.id, *id, "ids stay valid");
            }
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 6, "{end:?}");
        });
    }
}

#[test]
fn ids_are_never_given_out_twice_also_when_everything_has_expired() {
    for end in ENDS {
        run(async {
            let mut home = Home::new();
            home.options.retention = HOUR;
            let open = home.open();
            let old = open.accept(offer(URL)).await;
            open.finish_all(Next::Delivered).await;
            open.pass(2 * HOUR);
            open.nudge().await;
            assert_eq!(open.counts().await.expunged, 1);
            let home = open.end(end).await;
            // To the millisecond of the first.
            home.clock.step_back(2 * HOUR);
            let open = home.open();
            let new = open.accept(offer(URL)).await;
            assert_ne!(new.event, old.event, "{end:?}");
            assert_eq!(open.store.event(old.event).await, Ok(None));
        });
    }
}

#[test]
fn g5_a_lease_of_an_earlier_life_settles_nothing() {
    run(async {
        let open = Home::new().open();
        let id = open.one(offer(URL)).await;
        let late = open.claim_one().await;
        let open = open.again(End::Killed).await;
        let settlement = open.settlement(late, Next::Delivered, LaneNews::Neutral);
        let settled = open.store.settle(vec![settlement]).await.unwrap();
        assert_eq!(settled.ticket.await, Ok(()));
        assert_eq!(open.view(id).await.state, DeliveryState::Pending);
        assert_eq!(open.store.attempts(id).await, Ok(Vec::new()));
    });
}

#[test]
fn a_settlement_that_was_durable_is_not_repeated() {
    for end in ENDS {
        run(async {
            let open = Home::new().open();
            let id = open.one(offer(URL)).await;
            let claimed = open.claim_one().await;
            open.journal().await;
            open.finish(claimed, Next::Delivered).await;
            let open = open.again(end).await;
            open.pass(LEASE);
            assert_eq!(open.claim(9).await.len(), 0, "{end:?}");
            let view = open.view(id).await;
            assert_eq!(
                (view.state, view.attempts, view.last_status),
                (DeliveryState::Delivered, 1, Some(204))
            );
        });
    }
}

#[test]
fn what_is_handed_over_when_the_store_is_dropped_is_kept() {
    run(async {
        let open = Home::new().open();
        let accepted = open.many(16, &offer(URL)).await;
        let taken = open.claim(16).await;
        let batch = taken.into_iter().map(|one| open.settlement(one, Next::Delivered, LaneNews::Neutral));
        // The ticket is not awaited: the drop is.
        drop(open.store.settle(batch.collect()).await.unwrap());
        let open = open.again(End::Dropped).await;
        assert_eq!(open.counts().await.delivered, accepted.len() as u64);
    });
}

#[test]
fn g9_a_crowded_start_reads_a_bounded_part_of_every_lane() {
    run(async {
        let mut home = Home::new();
        home.limits.memory_total = 100;
        let open = home.open();
        for lane in 0..4 {
            let batch: Vec<Offer> = vec![offer(&format!("http://{lane}.example/")); 200];
            open.try_accept(batch).await.unwrap();
        }
        let open = open.again(End::Closed).await;
        assert_eq!(open.finish_all(Next::Delivered).await, 800);
        assert_eq!(open.counts().await.delivered, 800);
    });
}
