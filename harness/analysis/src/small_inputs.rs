//! Walks of a clean entry point with small numbers and other contents, where a proof leaves other inputs open.
//!
//! The search for inputs keeps the numbers that reach further code. A race may need others: a flag that a selection
//! compares, contents that end the loops of some invocations early, or one buffer at two addresses. Each walk has few
//! steps, and their number is bounded, so that finding nothing proves nothing.

use std::collections::{BTreeSet, HashSet};

use entry_point::AnalysisOptions;
use entry_point::assumed::written_members;
use entry_point::input_place::{AssumedInput, InputKind, InputPlace, SetBinding};
use spirv_reader::SpirvModule;
use walk::{GridFinding, analyze_grid, analyze_until};

use crate::choose::search::{set_contents, set_scalar};
use crate::needs::{describe_launch, list_choice};
use crate::proof::{ProofWalk, is_disproof, is_ordinary};

/// Numbers that are tried together up to a count of inputs, and one at a time for more.
const INTEGERS: [u64; 4] = [1, 2, 3, 0];
const FLOATS: [f32; 4] = [1.0, 2.0, 0.5, 0.0];
const MAX_TOGETHER: usize = 3;
/// Upper bound on the numbers that are changed.
const MAX_NUMBERS: usize = 8;
/// Contents of the buffers that the entry point does not write.
const CONTENTS: [Option<&str>; 3] = [None, Some("iota"), Some("floats")];
/// Upper bounds on the steps of a walk, and of all.
const STEPS_OF_WALK: u64 = 400_000;
const STEPS_OF_WALKS: u64 = 8_000_000;

/// A walk of other inputs than the chosen ones that finds a race or a divergent barrier.
pub(crate) struct SmallWalk {
    pub walk: ProofWalk,
    /// The numbers that differ from the chosen ones.
    pub changed: Vec<usize>,
}

/// Returns a walk that finds what no number below 2 in an address causes, with as few changes as one by one shows.
pub(crate) fn walk_small_inputs(
    module: &SpirvModule,
    given: &AnalysisOptions,
    chosen: &AnalysisOptions,
) -> Option<SmallWalk> {
    let function = module.find_entry(chosen.entry.as_deref()).ok()?.function;
    let written = written_members(module, function, true);
    let written: HashSet<SetBinding> = written.into_iter().map(|(at, _)| at).collect();
    let mut left = STEPS_OF_WALKS;
    let mut walk = |options: AnalysisOptions| {
        let most = STEPS_OF_WALK.min(left);
        let report = analyze_until(module, &options, most, &is_disproof).ok().filter(|_| most > 0)?;
        left = left.saturating_sub(report.steps);
        let is_shown = |found: &GridFinding| is_disproof(found) && !is_degenerate(&options, found);
        let is_shown = report.findings.iter().any(is_shown);
        let (inputs, sets_grid_alone, sets_contents) = (Vec::new(), false, true);
        let walk = ProofWalk { report, options, inputs, sets_grid_alone, sets_contents };
        (is_shown && is_ordinary(&walk)).then_some(walk)
    };
    // Numbers in buffers that are written are counters and flags.
    let is_changed = |input: &AssumedInput| match input.place {
        InputPlace::Scalar(at, ..) => is_small_number(input) && !written.contains(&at),
        _ => is_small_number(input),
    };
    let numbers: Vec<usize> =
        (0..chosen.assumed.len()).filter(|at| is_changed(&chosen.assumed[*at])).take(MAX_NUMBERS).collect();
    let bases = CONTENTS.iter().filter_map(|word| with_contents(chosen, &written, *word));
    let mut racing = bases.flat_map(|base| with_numbers(&base, &numbers)).find_map(&mut walk)?;
    let base = AnalysisOptions { buffers: chosen.buffers.clone(), ..racing.options.clone() };
    // Buffers hold numbers too.
    let with_chosen_contents = numbers.iter().fold(base, |mut options, at| {
        copy_scalar(&mut options, &racing.options, &chosen.assumed[*at]);
        options
    });
    let sets_contents = match walk(with_chosen_contents) {
        Some(simpler) => {
            racing = simpler;
            false
        }
        None => true,
    };
    let mut changed = Vec::new();
    for at in numbers {
        let mut simpler = racing.options.clone();
        copy_scalar(&mut simpler, chosen, &chosen.assumed[at]);
        match walk(simpler) {
            Some(simpler) => racing = simpler,
            None => changed.push(at),
        }
    }
    let deciding: BTreeSet<usize> = changed.iter().copied().collect();
    racing.sets_contents = sets_contents;
    racing.report = analyze_grid(module, &racing.options).ok()?;
    racing.inputs = list_choice(given, &racing.options, &deciding);
    Some(SmallWalk { walk: racing, changed })
}

/// Returns a walk in which all addresses are those of the first buffer; `None` for fewer than two.
pub(crate) fn walk_one_buffer(
    module: &SpirvModule,
    given: &AnalysisOptions,
    chosen: &AnalysisOptions,
) -> Option<ProofWalk> {
    let mut options = chosen.clone();
    let (first, others) = options.addresses.split_first_mut().filter(|(_, others)| !others.is_empty())?;
    for other in others {
        (other.name, other.bytes) = (first.name.clone(), first.bytes.clone());
    }
    let report = analyze_until(module, &options, STEPS_OF_WALK, &is_disproof).ok()?;
    let mut inputs = describe_launch(given, &options);
    inputs.push("one buffer at all addresses".to_owned());
    Some(ProofWalk { report, options, inputs, sets_grid_alone: false, sets_contents: false })
}

/// Sets a number to its value in other options.
fn copy_scalar(options: &mut AnalysisOptions, from: &AnalysisOptions, input: &AssumedInput) {
    let bytes: Vec<u8> = match input.place {
        InputPlace::Push(offset, size) => {
            (offset..).take(size as usize).map(|at| from.push.get(&at).copied().unwrap_or(0)).collect()
        }
        InputPlace::Scalar(at, offset, size) => {
            let contents = from.buffers.get(&at).into_iter().flat_map(|contents| contents.iter());
            contents.skip(offset as usize).take(size as usize).copied().collect()
        }
        _ => return,
    };
    let bits = bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    set_scalar(options, input, bits);
}

fn is_small_number(input: &AssumedInput) -> bool {
    input.is_number() && matches!(input.kind, InputKind::Integer | InputKind::Float(32))
}

/// Returns true if an address of a finding depends on an integer below 2, as rows of such a width overlap.
fn is_degenerate(options: &AnalysisOptions, found: &GridFinding) -> bool {
    found.inputs.iter().filter_map(|at| options.assumed.get(*at)).any(|input| {
        let value = input.describe_value(options).parse::<u64>();
        input.kind == InputKind::Integer && value.is_ok_and(|value| value < 2)
    })
}

/// Returns options with contents of the buffers that are not written; `None` if there are none.
fn with_contents(
    chosen: &AnalysisOptions,
    written: &HashSet<SetBinding>,
    word: Option<&str>,
) -> Option<AnalysisOptions> {
    let mut options = chosen.clone();
    let Some(word) = word else { return Some(options) };
    let read = chosen.assumed.iter().filter_map(|input| match input.place {
        InputPlace::Contents(at) if !written.contains(&at) => Some(at),
        _ => None,
    });
    let read: Vec<SetBinding> = read.collect();
    read.iter().for_each(|at| set_contents(&mut options, *at, word));
    (!read.is_empty()).then_some(options)
}

/// Returns options with small numbers.
fn with_numbers(base: &AnalysisOptions, numbers: &[usize]) -> Vec<AnalysisOptions> {
    let inputs: Vec<&AssumedInput> = numbers.iter().map(|at| &base.assumed[*at]).collect();
    let set = |options: &AnalysisOptions, input: &AssumedInput, index: usize| {
        let mut options = options.clone();
        let bits = match input.kind {
            InputKind::Float(_) => u64::from(FLOATS[index].to_bits()),
            _ => INTEGERS[index],
        };
        set_scalar(&mut options, input, bits);
        options
    };
    let mut all = vec![base.clone()];
    for input in &inputs {
        let of_input =
            |options: &AnalysisOptions| (0..INTEGERS.len()).map(|index| set(options, input, index)).collect();
        let changed: Vec<Vec<AnalysisOptions>> = match inputs.len() {
            0..=MAX_TOGETHER => all.iter().map(of_input).collect(),
            _ => vec![all.clone(), of_input(base)],
        };
        all = changed.into_iter().flatten().collect();
    }
    all.insert(0, base.clone());
    all
}
