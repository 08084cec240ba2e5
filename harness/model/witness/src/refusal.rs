//! Tests outside the scope of the witness.

/// Reason for refusing a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedTest {
    /// An atomic, a fence or a branch in a thread of the host.
    #[error("atomics, fences and branches of the host")]
    Host,
    /// A name that is larger than the storage that it shares, or an access to a part of an undefined initial value.
    #[error("parts of undefined locations")]
    Sizes,
    /// A location or an access of several components.
    #[error("vectors")]
    Vectors,
    /// A cooperative access.
    #[error("cooperative accesses")]
    Cooperative,
    #[error("named barriers with a quorum")]
    Quorum,
    #[error("cross-device scope in a shader")]
    CrossDevice,
    #[error("instructions of HSA")]
    Hsa,
    #[error("{0}")]
    Instruction(&'static str),
    /// A test in Khronos' format, whose values may be forced.
    #[error("tests in Khronos' format")]
    Khronos,
    /// A thread with several interlocked sections.
    #[error("several interlocked sections in one thread")]
    Sections,
    /// A shader call in a thread with jumps, or a thread that is called twice.
    #[error("shader calls that are conditional or repeated")]
    Calls,
    #[error("a name used through two storage classes")]
    Classes,
    #[error("a thread that does not end within the bound")]
    Endless,
    /// More than 64 operations in one execution.
    #[error("more than 64 operations")]
    Operations,
    #[error("too many candidate executions")]
    Executions,
}
