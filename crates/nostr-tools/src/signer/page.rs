//! A signer may want its owner to open a page first (`auth_url` of NIP-46). Whoever waits for it is shown the address while
//! there is still time, not only in the error that follows when nobody did.

use tokio::sync::mpsc;

/// A signer that names more pages in one call is not listened to.
const MAX_PAGES: usize = 4;

/// No address is longer.
const MAX_LENGTH: usize = 2048;

tokio::task_local! {
    static PAGES: mpsc::Sender<String>;
}

/// Work that may lead to a signer, and the pages that it wants opened meanwhile.
pub fn watched<T>(work: impl Future<Output = T>) -> (impl Future<Output = T>, mpsc::Receiver<String>) {
    let (sender, pages) = mpsc::channel(MAX_PAGES);
    (PAGES.scope(sender, work), pages)
}

/// What people are told.
pub fn words(page: &str) -> String {
    format!("the signer wants its owner to allow this first, at {page}")
}

/// The address of a page, if it is one that can be shown to people.
pub(super) fn checked(address: Option<String>) -> Option<String> {
    let is_harmless = |letter: char| letter.is_ascii_graphic() && !"<>\"`".contains(letter);
    address.filter(|url| url.starts_with("https://") && url.len() <= MAX_LENGTH && url.chars().all(is_harmless))
}

/// Shows a page to whoever waits, if somebody does.
pub(super) fn show(page: &str) {
    let _ = PAGES.try_with(|pages| pages.try_send(page.to_owned()));
}
