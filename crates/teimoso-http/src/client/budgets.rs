//! One retry budget per authority, shared by all calls of a client; absent: what a budget allows, which is
//! [`Budget`]'s.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use teimoso_retry::Budget;

/// Authorities whose budgets are kept at a time. When one more comes, one goes that nobody uses, if possible one that
/// had nothing spent: it would start anew as it is.
pub const BUDGETS_MAX: usize = 1024;

/// The budgets of one client or layer.
pub(crate) struct Budgets {
    /// What an authority starts with.
    full: Budget,
    by_authority: Mutex<HashMap<Box<str>, Arc<Account>>>,
}

/// The budget of one authority.
pub(crate) struct Account(Mutex<Budget>);

impl Budgets {
    pub(crate) fn new(full: Budget) -> Self {
        Self { full, by_authority: Mutex::default() }
    }

    /// The account of an authority (`example.com:8443`, with or without a scheme before it).
    pub(crate) fn of(&self, authority: &str) -> Arc<Account> {
        let mut accounts = self.by_authority.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = accounts.get(authority) {
            return Arc::clone(account);
        }
        if accounts.len() >= BUDGETS_MAX {
            self.evict(&mut accounts);
        }
        let account = Arc::new(Account(Mutex::new(self.full.clone())));
        accounts.insert(authority.into(), Arc::clone(&account));
        account
    }

    fn evict(&self, accounts: &mut HashMap<Box<str>, Arc<Account>>) {
        let loss = |account: &Arc<Account>| {
            let in_use = Arc::strong_count(account) > 1;
            (in_use, account.budget().available() < self.full.available())
        };
        let least = accounts.iter().min_by_key(|(_, account)| loss(account));
        if let Some(authority) = least.map(|(authority, _)| authority.clone()) {
            accounts.remove(&authority);
        }
    }
}

impl Account {
    /// Counts a request: its first attempt.
    pub(crate) fn request(&self) {
        self.budget().request();
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        // Every critical section is one call that leaves the budget whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was paid for a retry that has not been sent yet. Dropped before it is, as when the caller gives up during the
/// wait, it goes back.
pub(crate) struct Payment<'a> {
    account: Option<&'a Account>,
    owed: bool,
}

impl<'a> Payment<'a> {
    /// Nothing is paid yet. Without an account every retry is free.
    pub(crate) fn from(account: Option<&'a Account>) -> Self {
        Self { account, owed: false }
    }

    /// Pays for one retry; `false` when the budget does not reach.
    pub(crate) fn make(&mut self) -> bool {
        self.owed = self.account.is_some_and(|account| account.budget().spend());
        self.owed || self.account.is_none()
    }

    /// The retry begins: what was paid is gone.
    pub(crate) fn settle(mut self) {
        self.owed = false;
    }
}

impl Drop for Payment<'_> {
    fn drop(&mut self) {
        if let (true, Some(account)) = (self.owed, self.account) {
            account.budget().refund();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn available(account: &Account) -> u64 {
        account.budget().available()
    }

    #[test]
    fn an_authority_has_one_account_and_no_part_in_another_s() {
        let budgets = Budgets::new(Budget::new(200, 2));
        let (a, b) = (budgets.of("a.example"), budgets.of("b.example"));
        let mut payment = Payment::from(Some(&a));
        assert!(payment.make());
        payment.settle();
        assert_eq!((available(&budgets.of("a.example")), available(&b)), (1, 2));
    }

    #[test]
    fn what_was_paid_for_an_unsent_retry_goes_back() {
        let account = Account(Mutex::new(Budget::new(0, 1)));
        let mut first = Payment::from(Some(&account));
        assert!(first.make());
        assert!(!Payment::from(Some(&account)).make());
        assert_eq!(available(&account), 0);
        drop(first);
        assert_eq!(available(&account), 1);
        let mut second = Payment::from(Some(&account));
        assert!(second.make());
        second.settle();
        assert_eq!(available(&account), 0);
    }

    #[test]
    fn without_an_account_every_retry_is_free() {
        assert!(Payment::from(None).make());
    }

    #[test]
    fn accounts_are_bounded_and_a_spent_one_in_use_stays() {
        let budgets = Budgets::new(Budget::new(0, 1));
        let spent = budgets.of("spent.example");
        let mut payment = Payment::from(Some(&spent));
        assert!(payment.make());
        payment.settle();
        for number in 0..2 * BUDGETS_MAX {
            budgets.of(&format!("h{number}.example"));
        }
        assert_eq!(budgets.by_authority.lock().unwrap().len(), BUDGETS_MAX);
        assert_eq!(available(&budgets.of("spent.example")), 0);
    }
}
