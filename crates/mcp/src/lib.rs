//! The Model Context Protocol as Rialto speaks it: lossless, strict about envelopes, in five versions.
