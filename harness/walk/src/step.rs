//! The result of one step of an invocation.

use spirv_reader::SpirvProblem;

use entry_point::Problem;

/// Why a step did not complete.
pub(super) enum StepInterrupt {
    Refused(Problem),
    Waits,
    Ended,
}

impl From<Problem> for StepInterrupt {
    fn from(problem: Problem) -> StepInterrupt {
        StepInterrupt::Refused(problem)
    }
}

impl From<SpirvProblem> for StepInterrupt {
    fn from(problem: SpirvProblem) -> StepInterrupt {
        StepInterrupt::Refused(problem.into())
    }
}

pub(super) type Step<T> = Result<T, StepInterrupt>;
