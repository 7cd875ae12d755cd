//! What is said about a store as a whole, as data. Deliberately absent: the words, which are the catalogues'.

/// How an examination goes and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diagnosing {
    /// How far it is.
    Looked {
        /// Deliveries looked at.
        done: u64,
        /// Of about how many.
        of: u64,
    },
    /// Too much moved for the counters to be compared.
    NotCounted,
    /// Nothing is wrong.
    Sound,
    /// Something is wrong.
    Found {
        /// How many things.
        found: u64,
        /// How many of them were put right.
        healed: u64,
        /// Whether they were to be.
        healing: bool,
    },
}

/// How a move between stores goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moving<'a> {
    /// It is made sure that no server is at work.
    Listening {
        /// How long that takes.
        seconds: u64,
    },
    /// Leases of a server that is gone have to end.
    Leases {
        /// How many.
        in_flight: u64,
    },
    /// Deliveries carried over.
    Carried {
        /// So far.
        done: u64,
        /// Of about how many.
        of: u64,
    },
    /// Deliveries counted where they are now.
    Counted {
        /// So far.
        done: u64,
        /// Of about how many.
        of: u64,
    },
    /// Everything has moved.
    Done {
        /// From where.
        from: &'a str,
    },
}
