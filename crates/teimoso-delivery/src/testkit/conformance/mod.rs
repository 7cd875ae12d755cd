//! The rules that every store keeps, one function per rule.
//!
//! [`conformance_suite!`](crate::conformance_suite) makes each of them a test of its own. A rule moves
//! the clock by hand, awaits every ticket before it looks, and checks conservation (G2) after every
//! step. Deliberately absent: what a store does at a crash, which only the store itself can stage.

mod accepting;
mod bench;
mod claiming;
mod leasing;
mod moving;
mod ordering;
mod querying;
mod replaying;
mod settling;

pub use accepting::*;
pub use bench::{Bench, Fixture, Make};
pub(crate) use bench::{rule, twin};
pub use claiming::*;
pub use leasing::*;
pub use moving::*;
pub use ordering::*;
pub use querying::*;
pub use replaying::*;
pub use settling::*;

/// Expands to one `#[test]` per rule for the store that `$make` makes.
///
/// `$make` is called with a [`ManualClock`](crate::testkit::ManualClock) and returns a
/// [`Fixture`]: `conformance_suite!(|clock| Fixture::new(Arc::new(MyStore::new(clock))));`
///
/// `conformance_suite!(in_one_test: $make)` makes all of them one test, in which `$make` is evaluated once: for stores
/// on something that takes long to start, and that can hold many of them.
#[macro_export]
macro_rules! conformance_suite {
    (in_one_test: $make:expr) => {
        $crate::conformance_suite! { @rules in_one $make }
    };
    ($make:expr) => {
        $crate::conformance_suite! { @rules each $make }
    };
    (@rules $how:ident $make:expr) => {
        $crate::conformance_suite! { @$how $make;
            g1_a_repeated_name_with_the_same_body_answers_the_same_id
            g1_a_name_with_another_body_is_refused_and_its_siblings_are_not
            g1_a_name_repeated_within_one_batch_makes_one_event
            g1_a_key_that_joins_a_known_id_belongs_to_it_from_then_on
            g1_concurrent_requests_with_one_key_make_one_event
            g1_names_belong_to_their_application
            g1_a_batch_is_answered_in_order
            g1_a_name_is_remembered_for_a_day_and_not_for_ever
            an_event_without_a_destination_is_kept_without_deliveries
            g4_at_most_once_is_accepted_where_the_store_says_so
            g7_the_payload_is_byte_exact
            what_was_accepted_is_what_is_claimed
            g8_deliveries_are_claimed_in_due_order_and_never_early
            g8_the_claim_says_when_to_wake
            g8_wait_completes_after_an_accept
            g8_wait_completes_after_a_retry
            g9_a_backlog_starves_no_other_lane
            g9_applications_take_turns_before_lanes_do
            g9_a_lane_holds_at_most_half_of_the_free_slots_and_at_least_one
            a_claim_takes_no_more_than_it_wants_and_nothing_twice
            a_repeated_claim_answers_the_same_leases
            g10_a_paused_lane_waits_and_comes_back_with_one_probe
            g10_a_failure_count_opens_the_lane
            g5_a_strangers_nonce_settles_nothing
            g5_nothing_is_settled_twice
            g5_extend_keeps_what_is_held_and_names_what_is_lost
            g6_an_expired_lease_is_recovered_and_the_third_is_poison
            g6_a_settlement_after_the_recovery_writes_nothing
            g4_a_recovered_at_most_once_delivery_is_dead_ambiguous
            a_released_delivery_is_claimable_at_once_and_counts_no_attempt
            a_delivered_one_is_final
            a_scheduled_one_is_due_when_it_says_and_not_before
            a_dead_one_keeps_its_reason_and_its_payload
            the_attempts_record_is_kept_as_it_was
            a_settle_frees_the_lanes_slot_before_it_is_durable
            a_batch_settles_each_delivery_for_itself
            a_closed_store_takes_nothing_more
            cancel_ends_what_waits
            cancel_in_flight_lets_a_2xx_win
            cancel_of_an_ended_or_unknown_delivery_changes_nothing
            retry_renews_what_ended_badly_or_waits
            retry_of_a_delivered_one_must_be_explicit
            a_replay_keeps_its_rate_and_ends
            a_dry_run_counts_and_changes_nothing
            a_replay_skips_ambiguous_unless_named
            a_replay_takes_what_its_filter_names
            a_cancelled_replay_goes_no_further
            an_event_is_found_by_our_id_and_by_the_callers
            unknown_ids_are_answered_with_nothing
            g2_pages_show_every_row_once
            filters_narrow_a_listing
            a_made_up_cursor_is_refused
            the_oldest_due_is_named
            what_is_exported_and_imported_reads_the_same
            g1_a_moved_name_answers_the_same_id
            a_move_that_was_cut_off_is_begun_again_and_ends_with_everything_once
            nothing_moves_into_a_store_that_is_in_use
            a_replay_goes_on_where_it_moves_to
        }
    };
    (@each $make:expr; $($rule:ident)+) => {
        $(
            #[test]
            fn $rule() {
                $crate::testkit::conformance::$rule(&$make);
            }
        )+
    };
    (@in_one $make:expr; $($rule:ident)+) => {
        #[test]
        fn every_rule_is_kept() {
            let make = $make;
            $(
                eprintln!("{}", stringify!($rule));
                $crate::testkit::conformance::$rule(&make);
            )+
        }
    };
}
