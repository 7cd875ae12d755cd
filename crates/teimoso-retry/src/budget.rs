//! How many retries one authority may cost (a share of the requests, plus a small reserve); absent: clocks, floats and
//! locks: the owner keeps one per authority and serialises access.

/// A retry budget for one authority.
///
/// Every request earns a share of a retry, every retry spends one. What is saved never exceeds the reserve, so in any
/// window whatsoever `retries ≤ floor(ratio × requests) + reserve`: a long healthy stretch saves up no storm.
/// Counted in thousandths of a retry, exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    per_mille: u32,
    ceiling: u64,
    saved: u64,
}

const WHOLE: u64 = 1000;

impl Budget {
    /// A full budget. `per_mille` is the share of a retry that each request earns, in thousandths: 200 allows one retry
    /// per five requests. `reserve` is the number of whole retries that may be saved, and that a new budget starts with.
    pub fn new(per_mille: u32, reserve: u32) -> Self {
        let ceiling = u64::from(reserve) * WHOLE;
        Self { per_mille, ceiling, saved: ceiling }
    }

    /// Counts a request: its first attempt, not its retries.
    pub fn request(&mut self) {
        self.saved = self.saved.saturating_add(u64::from(self.per_mille)).min(self.ceiling);
    }

    /// Whether a retry could be paid: the `budget_ok` of [`crate::decide`].
    pub fn allows(&self) -> bool {
        self.saved >= WHOLE
    }

    /// Pays for a retry; `false`, and nothing is spent, when the budget does not reach.
    pub fn spend(&mut self) -> bool {
        let allowed = self.allows();
        if allowed {
            self.saved -= WHOLE;
        }
        allowed
    }

    /// Returns what [`Budget::spend`] took for a retry that was not sent.
    pub fn refund(&mut self) {
        self.saved = self.saved.saturating_add(WHOLE).min(self.ceiling);
    }

    /// Whole retries that could be paid now.
    pub fn available(&self) -> u64 {
        self.saved / WHOLE
    }
}

impl Default for Budget {
    /// One retry per five requests and a reserve of ten: enough for one lone request to use every attempt of the longest
    /// preset.
    fn default() -> Self {
        Self::new(200, 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend_all(budget: &mut Budget) -> u64 {
        (0..1000).map_while(|_| budget.spend().then_some(1)).sum()
    }

    #[test]
    fn a_new_budget_holds_its_reserve_and_no_more() {
        assert_eq!(spend_all(&mut Budget::new(200, 3)), 3);
        assert_eq!(spend_all(&mut Budget::new(1000, 0)), 0);
    }

    #[test]
    fn five_requests_at_a_fifth_earn_exactly_one_retry() {
        let mut budget = Budget::new(200, 3);
        assert_eq!(spend_all(&mut budget), 3);
        for _ in 0..4 {
            budget.request();
            assert!(!budget.allows());
        }
        budget.request();
        assert_eq!(budget.available(), 1);
        assert_eq!(spend_all(&mut budget), 1);
    }

    #[test]
    fn ratios_that_do_not_divide_a_retry_are_still_exact() {
        // A truncated reciprocal would make any of these 100 %.
        for per_mille in [600, 700, 900] {
            let mut budget = Budget::new(per_mille, 1000);
            spend_all(&mut budget);
            (0..1000).for_each(|_| budget.request());
            assert_eq!(budget.available(), u64::from(per_mille));
        }
    }

    #[test]
    fn a_long_healthy_stretch_saves_no_more_than_the_reserve() {
        let mut budget = Budget::default();
        (0..1_000_000).for_each(|_| budget.request());
        assert_eq!(spend_all(&mut budget), 10);
    }

    #[test]
    fn a_refund_returns_what_was_spent_and_never_more() {
        let mut budget = Budget::new(200, 2);
        assert!(budget.spend());
        budget.refund();
        budget.refund();
        assert_eq!(budget.available(), 2);
    }
}
