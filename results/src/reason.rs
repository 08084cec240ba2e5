//! Reasons of records without a verdict.

use litmus::closed_enum;

closed_enum! {
    /// Why a test has no verdict.
    pub enum Reason {
        /// Too few instances in which threads overlapped.
        NotExercised = "not exercised",
        /// The run or the prediction exceeded its time limit.
        TimedOut = "timed out",
        /// The time budget ended before the test started.
        NoTime = "no time",
        /// The worker process exited without a result.
        Crashed = "crashed",
        /// The driver reported the device as lost.
        DeviceLost = "device lost",
        /// Instances have no result and no limit of this program explains it, or more than
        /// [`DISCARDED_SHARE_LIMIT`](crate::judge::DISCARDED_SHARE_LIMIT) of the dispatches were discarded, or no instance ran.
        NotExecuted = "not executed",
        /// Memory that the host accesses during the test has words that no thread wrote.
        CorruptMemory = "memory is corrupt",
        /// Device and host counted the outcomes of a dispatch differently.
        CountsDisagree = "counts disagree",
        /// Every instance reached the iteration limit of a spin loop.
        NoResolvedInstance = "no resolved instance",
        /// The device executes nothing.
        NullDevice = "null device",
        /// The set of allowed outcomes is unknown.
        NotJudged = "not judged",
        /// The run ended before this test, or its record is lost.
        Missing = "missing",
    }
}
