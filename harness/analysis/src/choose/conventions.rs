//! Values of inputs with a meaning: zeros in counters, flags and locks, and numbers too small for invocations to meet.

use std::collections::{BTreeSet, HashSet};

use spirv_reader::{GlobalVariable, Specialized, SpirvModule, SpirvOperation, SpirvType};

use entry_point::assumed::{StartValue, atomic_bindings, atomic_members, start_values, written_members};
use entry_point::input_place::{AssumedInput, InputPlace, SetBinding};
use entry_point::{AnalysisOptions, FindingKind};
use walk::Trial;

/// The inputs that programs start as zeros: buffers with counters, flags and locks.
///
/// Zeros hide what a minimum or a counter that falls does, so these may start otherwise, too.
#[derive(Clone, Debug, Default)]
pub(super) struct Conventions {
    pub(super) inputs: BTreeSet<usize>,
    /// Those among them that only an atomic minimum changes. Programs start them with the largest number.
    pub(super) minima: BTreeSet<usize>,
    /// Those among them that atomics only decrease, such as the length of a free list.
    pub(super) falling: BTreeSet<usize>,
    /// Those among them that the kernel only reads. Another kernel sets such a flag.
    pub(super) read_only: BTreeSet<usize>,
    /// The arrays with a computed index. Another kernel may have set their elements to the start of each bin of a sort.
    pub(super) arrays: BTreeSet<usize>,
}

impl Conventions {
    /// Returns the conventions for the inputs that `start` assumes; `atomics` are the buffers that `function` accesses
    /// atomically.
    pub(super) fn of_entry(
        module: &SpirvModule,
        specialized: &Specialized<'_>,
        (function, atomics): (u32, &BTreeSet<SetBinding>),
        start: &AnalysisOptions,
    ) -> Conventions {
        let written = written_members(module, function, true);
        let stored = written_members(module, function, false);
        let values = start_values(module, function);
        let member_of = |input: &AssumedInput| match input.place {
            InputPlace::Scalar(at, offset, _) => Some((at, member_at(module, specialized, at, offset)?)),
            _ => None,
        };
        let scalars: BTreeSet<(SetBinding, u64)> = start.assumed.iter().filter_map(member_of).collect();
        let is_only_read = |input: &AssumedInput| {
            member_of(input).is_some_and(|(at, member)| {
                !written.contains(&(at, None)) && !written.contains(&(at, Some(member)))
            })
        };
        let atomic = atomic_members(module, function);
        // A number next to a counter, such as the length of a queue, is none if the kernel reads it only plainly.
        let is_number = |input: &AssumedInput| {
            is_only_read(input)
                && member_of(input).is_some_and(|(at, member)| {
                    !atomic.contains(&(at, None)) && !atomic.contains(&(at, Some(member)))
                })
        };
        let is_counter = |input: &AssumedInput| match input.place {
            InputPlace::Scalar(at, ..) => atomics.contains(&at) && !is_number(input),
            InputPlace::Contents(at) => atomics.contains(&at),
            _ => false,
        };
        // Another kernel does not compute what this one stores.
        let is_array = |input: &AssumedInput| match input.place {
            InputPlace::Contents(at) => {
                let is_stored = stored.iter().any(|(stored_place, _)| *stored_place == at);
                is_counter(input) && !is_stored && has_computed_index(module, at)
            }
            _ => false,
        };
        let starts_with = |input: &AssumedInput, value: StartValue| match input.place {
            InputPlace::Scalar(..) => {
                member_of(input).is_some_and(|(at, member)| values.get(&(at, Some(member))) == Some(&value))
            }
            InputPlace::Contents(at) => values.iter().any(|((of, member), known)| {
                let is_scalar = member.is_some_and(|member| scalars.contains(&(at, member)));
                *of == at && !is_scalar && *known == value
            }),
            _ => false,
        };
        let inputs_where = |keep: &dyn Fn(&AssumedInput) -> bool| -> BTreeSet<usize> {
            let inputs = start.assumed.iter().enumerate();
            inputs.filter(|(_, input)| keep(input)).map(|(index, _)| index).collect()
        };
        Conventions {
            inputs: inputs_where(&is_counter),
            minima: inputs_where(&|input| starts_with(input, StartValue::Largest)),
            falling: inputs_where(&|input| starts_with(input, StartValue::Count)),
            read_only: inputs_where(&is_only_read),
            arrays: inputs_where(&is_array),
        }
    }

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

    /// Returns true if these inputs are zeros, or what programs start them with.
    pub(super) fn is_satisfied_by(&self, options: &AnalysisOptions) -> bool {
        self.inputs.difference(&self.falling).all(|at| {
            let of_minimum = self.minima.contains(at);
            let is_usual = |input| is_zero(input, options) || of_minimum && has_all_bits(input, options);
            options.assumed.get(*at).is_none_or(is_usual)
        })
    }
}

/// Returns true if `inputs` are counters, flags or locks that start as zeros, as programs start them.
pub(crate) fn are_zero_counters(module: &SpirvModule, options: &AnalysisOptions, inputs: &[usize]) -> bool {
    let entry = module.find_entry(options.entry.as_deref());
    let atomics = entry.map_or_else(|_| HashSet::new(), |entry| atomic_bindings(module, entry.function));
    inputs.iter().all(|index| {
        let Some(input) = options.assumed.get(*index) else { return false };
        let at = match input.place {
            InputPlace::Scalar(at, ..) | InputPlace::Contents(at) => at,
            _ => return false,
        };
        atomics.contains(&at) && !has_computed_index(module, at) && is_zero(input, options)
    })
}

/// Returns the member of a block at an offset, or `None` if no variable of this binding is a block.
fn member_at(
    module: &SpirvModule,
    specialized: &Specialized<'_>,
    binding: SetBinding,
    offset: u64,
) -> Option<u64> {
    let is_bound = |(id, variable): &(&u32, &GlobalVariable)| {
        matches!(module.types.get(&variable.ty), Some(SpirvType::Struct { .. }))
            && module.descriptor_of(**id) == Some(binding)
    };
    let (_, variable) = module.variables.iter().find(is_bound)?;
    let start = |member: u64| specialized.part_of(variable.ty, member).ok().map(|part| part.offset);
    let members = 0..specialized.part_count(variable.ty).ok()? as u64;
    members
        .filter(|member| start(*member).is_some_and(|start| start <= offset))
        .max_by_key(|member| start(*member))
}

/// Returns true if an access of a buffer may have an index that is not constant.
fn has_computed_index(module: &SpirvModule, at: SetBinding) -> bool {
    let mut pointers: BTreeSet<u32> = module.variables_at(at).into_iter().collect();
    let mut code = module.functions.values().flat_map(|function| &function.code);
    code.any(|one| match module.operation(one) {
        SpirvOperation::AccessChain { base, element, indices } if pointers.contains(&base) => {
            pointers.insert(one.result);
            element.iter().chain(indices).any(|index| !module.constants.contains_key(index))
        }
        SpirvOperation::Call { arguments, .. } => {
            arguments.iter().any(|argument| pointers.contains(argument))
        }
        _ => false,
    })
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

/// Returns true if one of these inputs is a bound beyond all positions of a trial; see [`Trial::is_beyond_positions`].
pub(super) fn is_beyond_positions(inputs: &[usize], options: &AnalysisOptions, trial: &Trial) -> bool {
    let number = |input: usize| options.assumed.get(input)?.describe_value(options).parse().ok();
    inputs.iter().any(|input| number(*input).is_some_and(|number| trial.is_beyond_positions(*input, number)))
}

/// Returns true if the bytes of an input are zeros.
fn is_zero(input: &AssumedInput, options: &AnalysisOptions) -> bool {
    matches!(input.describe_value(options).as_str(), "0" | "zeros")
}

/// Returns true if all bits of an input are set.
fn has_all_bits(input: &AssumedInput, options: &AnalysisOptions) -> bool {
    let value = input.describe_value(options);
    value == "ones" || [u64::from(u32::MAX), u64::MAX].iter().any(|all| value == all.to_string())
}
