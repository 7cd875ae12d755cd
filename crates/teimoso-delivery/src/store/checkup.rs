//! What an examination of a store found, as data: the counters beside what is really there, what belongs to nothing,
//! what was healed. Deliberately absent: how a store looks, and the words for people.

use super::Counts;

/// Most ids kept of one kind of finding.
pub const MAX_EXAMPLES: usize = 5;

crate::model::named! {
    /// What can be wrong with a store. A closed list with stable names.
    FindingKind {
        /// The counters say another number than a scan.
        CountersOff = 1 "counters_off",
        /// Accepted, and in none of the states: the conservation law (G2) is broken.
        AcceptedMissing = 2 "accepted_missing",
        /// Due one day, and in no queue: nobody would ever attempt it.
        AliveNotQueued = 3 "alive_not_queued",
        /// An entry of a queue whose delivery is gone, has ended, or waits elsewhere.
        QueuedWithoutDelivery = 4 "queued_without_delivery",
        /// In flight, and nobody's: its lease is gone, so nobody would ever recover it.
        InFlightWithoutLease = 5 "in_flight_without_lease",
        /// A lease on a delivery that is gone or not in flight.
        LeaseWithoutDelivery = 6 "lease_without_delivery",
        /// A delivery whose event is gone: there is nothing left to send.
        DeliveryWithoutEvent = 7 "delivery_without_event",
        /// An event that has fewer deliveries than were made for it.
        EventWithoutDeliveries = 8 "event_without_deliveries",
        /// A caller's id or idempotency key that names an event which is nowhere.
        NameWithoutEvent = 9 "name_without_event",
        /// Attempts of a delivery that is gone.
        AttemptWithoutDelivery = 10 "attempt_without_delivery",
        /// A delivery whose lane is unknown.
        LaneMissing = 11 "lane_missing",
        /// A lane with work that has no turn and no timer.
        LaneNotWaiting = 12 "lane_not_waiting",
        /// A lane that counts other attempts in flight than there are.
        LaneSlotsOff = 13 "lane_slots_off",
        /// An entry taken from a public key that nobody would give back.
        TakenWithoutDeadline = 14 "taken_without_deadline",
        /// A deadline for an entry that is not there.
        DeadlineWithoutEntry = 15 "deadline_without_entry",
        /// A record that this version cannot read.
        UnreadableRecord = 16 "unreadable_record",
        /// The file itself is damaged.
        DamagedFile = 17 "damaged_file",
        /// The store cannot be written.
        NotWritable = 18 "not_writable",
        /// A restart of the server loses what it was given.
        VolatileServer = 19 "volatile_server",
        /// The server deletes deliveries when its memory is short.
        EvictingServer = 20 "evicting_server",
        /// A replay job that runs and has no turn.
        ReplayNotDue = 21 "replay_not_due",
        /// What a process that is gone left behind and nobody would clear away.
        StaleProcessEntry = 22 "stale_process_entry",
        /// A listing that leaves something out, or names what is not of its kind.
        ListingOff = 23 "listing_off",
    }
}

/// One kind of thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// How many.
    pub count: u64,
    /// How many of them were put right.
    pub healed: u64,
    /// The first few by id, or a sentence of the store's own; at most [`MAX_EXAMPLES`].
    pub examples: Vec<String>,
}

/// Something an operator wants to know that is neither right nor wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// A stable name with its unit: `log_bytes`, `fsync_p99_us`.
    pub name: &'static str,
    /// Its value.
    pub value: FactValue,
}

/// A fact's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactValue {
    /// A number in the name's unit.
    Number(u64),
    /// A word or a sentence.
    Text(String),
}

/// What an examination found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkup {
    /// The counters as the store keeps them.
    pub counts: Counts,
    /// The same counted anew; `None` when too much moved meanwhile to compare.
    pub scanned: Option<Counts>,
    /// What is wrong, in the order of [`FindingKind`].
    pub findings: Vec<Finding>,
    /// What is worth knowing.
    pub facts: Vec<Fact>,
}

impl Checkup {
    /// Adds one thing that is wrong.
    pub fn found(&mut self, kind: FindingKind, example: impl Into<String>) {
        self.found_many(kind, 1, example);
    }

    /// Adds several of a kind with one example.
    pub fn found_many(&mut self, kind: FindingKind, count: u64, example: impl Into<String>) {
        let finding = self.finding(kind);
        finding.count += count;
        if finding.examples.len() < MAX_EXAMPLES {
            finding.examples.push(example.into());
        }
    }

    /// Notes that so many of what was found are put right.
    pub fn healed(&mut self, kind: FindingKind, count: u64) {
        let finding = self.finding(kind);
        finding.healed = finding.count.min(finding.healed + count);
    }

    fn finding(&mut self, kind: FindingKind) -> &mut Finding {
        let at = match self.findings.binary_search_by_key(&kind, |finding| finding.kind) {
            Ok(at) => at,
            Err(at) => {
                self.findings.insert(at, Finding { kind, count: 0, healed: 0, examples: Vec::new() });
                at
            }
        };
        &mut self.findings[at]
    }

    /// Adds a number worth knowing.
    pub fn number(&mut self, name: &'static str, value: u64) {
        self.facts.push(Fact { name, value: FactValue::Number(value) });
    }

    /// Adds a word worth knowing.
    pub fn text(&mut self, name: &'static str, value: impl Into<String>) {
        self.facts.push(Fact { name, value: FactValue::Text(value.into()) });
    }

    /// How many of this kind were found.
    #[must_use]
    pub fn count_of(&self, kind: FindingKind) -> u64 {
        self.findings.iter().find(|finding| finding.kind == kind).map_or(0, |finding| finding.count)
    }

    /// What was found and what of it was put right, over all kinds.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        self.findings
            .iter()
            .fold((0, 0), |(found, healed), finding| (found + finding.count, healed + finding.healed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_sorted_summed_and_illustrated_by_a_few() {
        let mut checkup = Checkup::default();
        for n in 0..7 {
            checkup.found(FindingKind::LaneMissing, format!("dlv_{n}"));
        }
        checkup.found_many(FindingKind::CountersOff, 2, "pending");
        checkup.healed(FindingKind::LaneMissing, 3);
        let shown: Vec<_> =
            checkup.findings.iter().map(|f| (f.kind.name(), f.count, f.healed, f.examples.len())).collect();
        assert_eq!(shown, [("counters_off", 2, 0, 1), ("lane_missing", 7, 3, MAX_EXAMPLES)]);
        assert_eq!(checkup.totals(), (9, 3));
        checkup.healed(FindingKind::LaneMissing, 99);
        assert_eq!(checkup.totals(), (9, 7), "no more is healed than was found");
    }
}
