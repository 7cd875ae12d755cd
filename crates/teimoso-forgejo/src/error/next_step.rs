//! What a person can try after an error; absent: the words, which are the caller's.

/// What to try next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NextStep {
    /// 401: make another token.
    NewToken,
    /// 403: look at the scopes of the token, and at what its user may do.
    Permission,
    /// 404: look at the spelling, and at what the token may see.
    SpellingOrAccess,
    /// 423: unarchive the repository.
    Unarchive,
    /// Give the address that the redirect leads to as the server's.
    AddressOfRedirect,
    /// Nobody answers there, or it is no Forgejo that does: look at the address of the server.
    Address,
    /// Try again in a while: it may pass by itself.
    Later,
}
