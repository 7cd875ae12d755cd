//! What a server says of itself and of the token; absent: its settings.

use crate::client::{Call, Client};
use crate::error::Error;
use crate::model::{User, Version};

impl Client {
    /// The version of the server. A read.
    ///
    /// # Errors
    ///
    /// Any failure of the request.
    pub async fn version(&self) -> Result<Version, Error> {
        self.request(Call::get(&["version"])).await?.read()
    }

    /// Whose token it is: the cheapest way to find out whether it is good. A read.
    ///
    /// # Errors
    ///
    /// A 401 for a token that is not, a 403 for one that may not ask, or any failure of the request.
    pub async fn user(&self) -> Result<User, Error> {
        self.request(Call::get(&["user"])).await?.read()
    }
}
