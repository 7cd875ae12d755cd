//! The providers, one file each, and the list of them; absent: anything that two of them share, which stands in
//! [`adapter`](crate::adapter).

mod evolution;
mod evolution_go;
mod quepasa;
mod uazapi;
mod waha;
mod whapi;
mod wppconnect;
mod wuzapi;
mod z_api;

use std::fmt;

use crate::adapter::Adapter;

/// Every provider, in the order in which they are shown.
pub const PROVIDERS: [&dyn Adapter; 9] = [
    &waha::Waha,
    &evolution::Evolution,
    &evolution_go::EvolutionGo,
    &uazapi::Uazapi,
    &z_api::ZApi,
    &wuzapi::Wuzapi,
    &whapi::Whapi,
    &wppconnect::WppConnect,
    &quepasa::QuePasa,
];

/// The provider of this name.
///
/// # Errors
///
/// [`UnknownProvider`], whose text lists those there are.
pub fn provider(name: &str) -> Result<&'static dyn Adapter, UnknownProvider> {
    PROVIDERS.into_iter().find(|adapter| adapter.facts().name == name).ok_or(UnknownProvider)
}

/// A name that no provider has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownProvider;

impl fmt::Display for UnknownProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such provider; the names are")?;
        PROVIDERS.into_iter().try_for_each(|adapter| write!(f, " {}", adapter.facts().name))
    }
}

impl std::error::Error for UnknownProvider {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_7_there_are_eight_providers_and_one_more() {
        let names = PROVIDERS.map(|adapter| adapter.facts().name);
        let expected = [
            "waha",
            "evolution",
            "evolution-go",
            "uazapi",
            "z-api",
            "wuzapi",
            "whapi",
            "wppconnect",
            "quepasa",
        ];
        assert_eq!(names, expected);
        for name in names {
            assert_eq!(provider(name).map(|adapter| adapter.facts().name), Ok(name));
        }
    }

    #[test]
    fn an_unknown_name_lists_those_there_are() {
        let error = provider("waah").unwrap_err();
        assert!(error.to_string().starts_with("no such provider; the names are waha evolution "), "{error}");
    }
}
