//! The result of one step of an invocation.

use spirv_reader::SpirvProblem;

use entry_point::Problem;

/// Why a step did not complete.
pub(super) enum StepInterrupt {
    /// Boxed: steps return by value, and refusals are rare.
    Refused(Box<Problem>),
    Waits,
    Ended,
}

impl From<Problem> for StepInterrupt {
    fn from(problem: Problem) -> StepInterrupt {
        StepInterrupt::Refused(Box::new(problem))
    }
}

impl From<SpirvProblem> for StepInterrupt {
    fn from(problem: SpirvProblem) -> StepInterrupt {
        Problem::from(problem).into()
    }
}

pub(super) type Step<T> = Result<T, StepInterrupt>;
