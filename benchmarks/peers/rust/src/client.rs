//! The Aeron client, and what every mode does with it.

use rusteron_client::{Aeron, AeronContext, AeronExclusivePublication, AeronOfferError, AeronSubscription, Handlers};

use crate::Result;
use crate::options::{Options, Stream};
use crate::wait::{LIMIT, Wait};

pub struct Client {
    aeron: Aeron,
}

impl Client {
    pub fn connect(options: &Options) -> Result<Self> {
        let context = AeronContext::new()?;
        context.set_dir(&options.aeron_dir)?;
        // Such as the end of the driver, which spinning would not see.
        context.set_error_handler(Some(|code: i32, message: &str| {
            eprintln!("Aeron: {message} ({code})");
            std::process::exit(1);
        }))?;
        let aeron = Aeron::new(&context)?;
        aeron.start()?;
        Ok(Self { aeron })
    }

    pub fn publication(&self, stream: &Stream) -> Result<AeronExclusivePublication> {
        Ok(self
            .aeron
            .async_add_exclusive_publication(&stream.channel, stream.id)?
            .poll_blocking(LIMIT)?)
    }

    pub fn subscription(&self, stream: &Stream) -> Result<AeronSubscription> {
        let adding = self
            .aeron
            .async_add_subscription(&stream.channel, stream.id, Handlers::NONE, Handlers::NONE)?;
        Ok(adding.poll_blocking(LIMIT)?)
    }
}

/// A publication and the subscription that its messages, or the replies to them, come on.
pub struct Link {
    pub publication: AeronExclusivePublication,
    pub subscription: AeronSubscription,
    _client: Client,
}

impl Link {
    /// Returns when both are connected.
    pub fn connect(options: &Options, receiving: &Stream) -> Result<Self> {
        let client = Client::connect(options)?;
        let subscription = client.subscription(receiving)?;
        let publication = client.publication(options.own_stream())?;
        wait_until("a subscriber", || publication.is_connected())?;
        wait_until("a publisher", || subscription.is_connected())?;
        Ok(Self {
            publication,
            subscription,
            _client: client,
        })
    }
}

pub fn wait_until(what: &'static str, condition: impl Fn() -> bool) -> Result<()> {
    let mut wait = Wait::new(what);
    while !condition() {
        wait.pause()?;
    }
    Ok(())
}

/// Offers a message until it is taken; `refused` runs after each time that it was not.
#[inline]
pub fn offer(
    publication: &AeronExclusivePublication,
    message: &[u8],
    mut refused: impl FnMut() -> Result<()>,
) -> Result<()> {
    let mut wait = Wait::new("room in the log");
    loop {
        match publication.offer(message) {
            Ok(_) => return Ok(()),
            Err(AeronOfferError::BackPressured | AeronOfferError::AdminAction | AeronOfferError::NotConnected) => {
                refused()?;
                wait.spin()?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
