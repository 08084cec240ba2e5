//! Litmus tests for GPU memory models, and races in shaders, as a library.
//!
//! The crate is a facade over the crates of this workspace, and the program `vk-litmus` is built on it. Each
//! question has one type and one method.
//!
//! | question | call | answer |
//! |---|---|---|
//! | Is this text a litmus test? | [`LitmusTest::parse`], [`LitmusTest::find`] | [`LitmusTest`] |
//! | Which outcomes does a model allow, and does the program race? | [`Checker::check`] | [`wire::CheckLine`] |
//! | Is this shader free of races, and does its assertion hold in every execution? | [`Checker::check_shader`] | [`wire::CheckLine`] |
//! | Which accesses of a shader race when a whole grid runs? | [`RaceDetector::find_races`] | [`wire::RaceLine`] |
//! | Does a shader compute this from these arrays, without a race? | [`ShaderTest::run`] | the arrays, [`ShaderTestRun`] |
//! | Which rules does a shader break in every dispatch? | [`ShaderModule::lint`] | [`wire::FindingRecord`] |
//! | What does a test show on the simulated GPU? | [`SimulatedGpu::run`] | [`wire::RunLine`] |
//! | Do these counts of a device conform to a model? | [`judge_counts`] | [`wire::RunLine`] |
//! | What are the results of a run of the program? | [`read_results`] | [`RunResults`] |
//!
//! ```
//! use vk_litmus::{Checker, LitmusTest};
//!
//! let test = LitmusTest::parse(
//!     r"VULKAN MP
//! { x = 0; y = 0; }
//! P0@sg 0, wg 0, qf 0            | P1@sg 0, wg 1, qf 0             ;
//! st.av.dv.sc0 x, 1              | ld.atom.acq.dv.sc0.semsc0 r0, y ;
//! st.atom.rel.dv.sc0.semsc0 y, 1 | bne r0, 1, LC00                 ;
//!                                | ld.vis.dv.sc0 r1, x             ;
//!                                | LC00:                           ;
//! exists (P1:r0 == 1 /\ P1:r1 == 0)",
//! )?;
//! let answer = Checker::new()?.check(&test)?;
//! assert_eq!(answer.line.race, vk_litmus::wire::RaceWord::Free);
//! assert_eq!(answer.line.queries[0].holds, Some(false));
//! # Ok::<(), vk_litmus::Error>(())
//! ```
//!
//! # Design
//!
//! - **Inputs are opaque, answers are records.** A test, a model, a shader and its inputs are values without
//!   public fields. An answer is a record of [`wire`]: the type that the program prints with `--format json`,
//!   with a JSON schema in `results/schema/`. The program, the Python package and this crate share one
//!   vocabulary.
//! - **One error type.** [`Error`] has a file, a line, a column and a kind. A finding is part of an answer,
//!   not an error.
//! - **Every search is limited.** Checks and walks have a time limit with the default of the program; the
//!   prediction of a simulated run or [`judge_counts`] has a limit of steps. An answer past its limit is
//!   `unknown`, `undecided` or `inconclusive`, never a guess.
//! - **Nothing is printed.** Warnings are part of the answers; diagnostics go to `tracing`.
//! - **What this crate does not do.** Drivers crash and hang, so the program runs tests on real devices in
//!   worker processes. Call `vk-litmus run --format json`, and read its results with [`read_results`].
//!
//! # Features
//!
//! `cli` (default) builds the program. Without default features the crate has no command line, no `clap` and
//! no terminal output in its dependencies:
//!
//! ```toml
//! [dependencies]
//! vk-litmus = { version = "0.1", default-features = false }
//! ```
//!
//! # Semantic versioning
//!
//! The public items of this crate are the surface; those of the crates below it are not. While the version is
//! 0.x, an incompatible change raises the minor version, and any other change the patch version. These are
//! compatible changes: a new item, a new field of a record of [`wire`] (construct records with
//! `..Default::default()` or not at all), a new variant of [`ErrorKind`] or [`CheckStatus`], other words in
//! messages, and an answer that changes because a model or a checker was wrong. Verdicts that change are
//! listed in `docs/dev/verdicts.md`. A record whose meaning changes gets a new `schema`. The minimum Rust
//! version is that of the manifest; raising it raises the minor version.

#![warn(missing_docs)]

mod library;

pub use entry_point::inputs::{AddressMode, Sampler};
pub use library::check::{CheckAnswer, CheckStatus, Checker};
pub use library::error::{Error, ErrorKind};
pub use library::inputs::ShaderInputs;
pub use library::model::AxiomaticModel;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use library::program;
pub use library::race::{RaceAnswer, RaceDetector};
pub use library::results::{RunResults, read_results};
pub use library::shader::{CompileOptions, ShaderModule};
pub use library::shader_test::{
    DispatchAccess, PixelFormat, ShaderTest, ShaderTestError, ShaderTestRun, SmallestFailure, TestDevice,
};
pub use library::simulation::{SimulatedGpu, judge_counts};
pub use library::test::LitmusTest;
pub use library::wire;

/// The examples of the guide, which run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/howto/library.md")]
struct LibraryGuide;
