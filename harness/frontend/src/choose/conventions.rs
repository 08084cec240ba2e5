//! Values of inputs with a meaning: zeros in counters, flags and locks, and numbers too small for invocations to meet.

use std::collections::BTreeSet;

use crate::finding::FindingKind;
use crate::input_place::AssumedInput;
use crate::options::AnalysisOptions;

/// The inputs that programs start as zeros: buffers with counters, flags and locks.
#[derive(Clone, Debug, Default)]
pub(super) struct Conventions {
    pub(super) inputs: BTreeSet<usize>,
    /// Those among them that the kernel only reads. Another kernel sets such a flag.
    pub(super) read_only: BTreeSet<usize>,
    /// The arrays. Another kernel may have set their elements to the start of each bin of a sort.
    pub(super) arrays: BTreeSet<usize>,
}

impl Conventions {
    /// Returns true if the convention decides which value of an input a finding of this kind is judged with.
    ///
    /// A race is one for the first dispatch. A kernel that polls a flag without setting it hangs only if no other
    /// kernel sets the flag, so its hang depends on an input. So do writes that race with each other at places that
    /// the elements of an array give.
    fn decides_input(&self, kind: FindingKind, has_read: bool, input: usize) -> bool {
        let of_kind = match kind {
            FindingKind::Hang => !self.read_only.contains(&input),
            _ => kind.is_race() && (has_read || !self.arrays.contains(&input)),
        };
        of_kind && self.inputs.contains(&input)
    }

    /// Removes the inputs that the convention decides from those of a finding.
    pub(super) fn remove_settled(
        &self,
        (kind, has_read): (FindingKind, bool),
        inputs: &mut Vec<usize>,
        control: &mut Vec<usize>,
    ) {
        inputs.retain(|input| !self.decides_input(kind, has_read, *input));
        control.retain(|input| !self.decides_input(kind, true, *input));
    }

    /// Returns true if these inputs are zeros.
    pub(super) fn is_satisfied_by(&self, options: &AnalysisOptions) -> bool {
        let assumed = |input: &usize| options.assumed.get(*input);
        self.inputs.iter().filter_map(assumed).all(|input| is_zero(input, options))
    }
}

/// Returns true if one of these inputs is the number 0 or 1 in `other`, and larger in `options`.
///
/// A width, distance or number of rounds of 0 or 1 lets each invocation access its own elements only.
pub(super) fn has_degenerate_number(
    inputs: &[usize],
    options: &AnalysisOptions,
    other: &AnalysisOptions,
) -> bool {
    let number = |input: &usize, options: &AnalysisOptions| -> Option<u64> {
        let assumed = options.assumed.get(*input).filter(|assumed| !assumed.is_contents())?;
        assumed.describe_value(options).parse().ok()
    };
    let is_small = |input: &usize| {
        number(input, other).is_some_and(|number| number < 2)
            && number(input, options).is_some_and(|number| number > 1)
    };
    inputs.iter().any(is_small)
}

/// Returns true if the bytes of an input are zeros.
fn is_zero(input: &AssumedInput, options: &AnalysisOptions) -> bool {
    matches!(input.describe_value(options).as_str(), "0" | "zeros")
}
