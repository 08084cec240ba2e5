//! A language server (LSP 3.17) for the files of this project and for shaders.
//!
//! [`serve`] talks to an editor over standard input and output. Texts with a parser of this workspace (litmus
//! tests, cat models, suites, expectations, stress and case files) are analysed in threads of the server.
//! Everything else runs in child processes of the program with a time limit: `check` for litmus tests, `lint` for
//! edited shaders and `race` for saved ones. A compiler that crashes or hangs therefore ends a child, never the
//! server. A newer analysis of a document cancels the older one, and results for an older version of a text are
//! dropped.
//!
//! Positions of the protocol count UTF-16 code units ([`document`]); the analyses count bytes.

pub mod child;
mod detect;
mod diagnose;
mod document;
mod format;
mod jobs;
mod publish;
mod server;
mod settings;
mod shader;
mod transport;
mod verdict;

pub use server::{ServeError, serve};
