//! Limits of kernels of a shader stage, and the inputs of its invocations.

use rspirv::spirv::Op;
use spirv_reader::{SpirvModule, Stage};

use crate::error::{Problem, Refusal, SourcePosition, unsupported};

/// Returns true for derivative instructions, whose results are not computed.
pub(crate) fn is_derivative(op: Op) -> bool {
    matches!(
        op,
        Op::DPdx
            | Op::DPdy
            | Op::Fwidth
            | Op::DPdxFine
            | Op::DPdyFine
            | Op::FwidthFine
            | Op::DPdxCoarse
            | Op::DPdyCoarse
            | Op::FwidthCoarse
    )
}

/// Returns an invocation's `size` bytes of the given input, which repeats if it is too short.
pub(crate) fn invocation_share(all: &[u8], size: u64, invocation: u32) -> Option<&[u8]> {
    let size = usize::try_from(size).ok().filter(|size| *size > 0)?;
    let count = all.len() / size;
    let first = (invocation as usize).checked_rem(count)? * size;
    all.get(first..first + size)
}

/// Checks that an entry point's functions use nothing that its stage leaves unspecified.
///
/// # Errors
/// Returns the first such instruction with its position.
pub(crate) fn check_stage(module: &SpirvModule, stage: Stage, grid: Option<[u32; 3]>) -> Result<(), Refusal> {
    let word = match stage {
        Stage::Compute | Stage::Task | Stage::Mesh => return Ok(()),
        Stage::Vertex => "vertex",
        Stage::Fragment => "fragment",
    };
    if stage == Stage::Vertex && grid.is_some_and(|[.., z]| z != 1) {
        let what = "a grid of vertices counts vertices and instances: its third number is 1".to_owned();
        return Err(Problem::Annotation(what).located_at(SourcePosition::Module));
    }
    for function in module.functions.values() {
        for instruction in &function.code {
            let name = format!("{:?}", instruction.op);
            let what = match instruction.op {
                Op::ControlBarrier => {
                    format!(
                        "a control barrier in a {word} shader (no workgroups: VUID-StandaloneSpirv-None-04637)"
                    )
                }
                _ if name.starts_with("Group") => {
                    format!(
                        "Op{name} in a {word} shader: the invocations of a subgroup are unknown before \
                         execution"
                    )
                }
                _ => continue,
            };
            let line = module.source_line(instruction.line);
            return Err(unsupported(what)
                .located_at(line.map_or(instruction.place, |line| SourcePosition::Line(line.line))));
        }
    }
    Ok(())
}
