//! Fragment shader interlock: execution modes and states of interlocked sections.
//!
//! A grid's fragments have one sample each, at one pixel. So the sample and shading-rate modes exclude the
//! same fragments as the pixel mode: the primitives of one pixel ("Fragment Shader Interlock" in the Vulkan
//! specification). A fragment that ends inside its section, by `discard`, leaves it without a release.

use litmus::{InterlockEnd, InterlockOrder, Order, Semantics, StorageClassSet};
use rspirv::spirv::{ExecutionMode, Op};
use spirv_reader::Stage;

use crate::error::{Problem, unsupported};

/// The interlock mode of an entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterlockExecutionMode {
    /// The order in which fragments of a pixel enter.
    pub order: InterlockOrder,
    /// An assumption to report.
    pub note: Option<&'static str>,
}

/// The position of an invocation relative to its section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterlockState {
    #[default]
    Before,
    Inside,
    After,
}

const ONE_SAMPLE_NOTE: &str = "sample interlock: one sample of each pixel";
const ONE_PIXEL_NOTE: &str = "shading-rate interlock: fragments of one pixel";

impl InterlockExecutionMode {
    /// Returns the interlock mode among the modes of an entry point, if any.
    pub fn from_execution_modes(modes: &[ExecutionMode]) -> Option<InterlockExecutionMode> {
        modes.iter().rev().copied().find_map(InterlockExecutionMode::from_execution_mode)
    }

    /// Returns the interlock mode that an execution mode declares, if any.
    fn from_execution_mode(mode: ExecutionMode) -> Option<InterlockExecutionMode> {
        let (order, note) = match mode {
            ExecutionMode::PixelInterlockOrderedEXT => (InterlockOrder::Ordered, None),
            ExecutionMode::PixelInterlockUnorderedEXT => (InterlockOrder::Unordered, None),
            ExecutionMode::SampleInterlockOrderedEXT => (InterlockOrder::Ordered, Some(ONE_SAMPLE_NOTE)),
            ExecutionMode::SampleInterlockUnorderedEXT => (InterlockOrder::Unordered, Some(ONE_SAMPLE_NOTE)),
            ExecutionMode::ShadingRateInterlockOrderedEXT => (InterlockOrder::Ordered, Some(ONE_PIXEL_NOTE)),
            ExecutionMode::ShadingRateInterlockUnorderedEXT => {
                (InterlockOrder::Unordered, Some(ONE_PIXEL_NOTE))
            }
            _ => return None,
        };
        Some(InterlockExecutionMode { order, note })
    }

    /// Returns the mode in effect at an interlock instruction.
    ///
    /// # Errors
    /// Fails outside of fragment shaders, and without an interlock mode.
    pub fn require_at(
        declared: Option<InterlockExecutionMode>,
        end: InterlockEnd,
        stage: Stage,
    ) -> Result<InterlockExecutionMode, Problem> {
        declared.filter(|_| stage == Stage::Fragment).ok_or_else(|| {
            let op = match end {
                InterlockEnd::Begin => Op::BeginInvocationInterlockEXT,
                InterlockEnd::End => Op::EndInvocationInterlockEXT,
            };
            let why = match stage {
                Stage::Fragment => "without an interlock execution mode",
                Stage::Compute | Stage::Vertex | Stage::Task | Stage::Mesh => "outside a fragment shader",
            };
            unsupported(format!("Op{op:?} {why}"))
        })
    }
}

impl InterlockState {
    /// Returns the state after an interlock instruction, or the reason why it is invalid.
    pub fn advance(self, end: InterlockEnd) -> Result<InterlockState, &'static str> {
        match (self, end) {
            (InterlockState::Before, InterlockEnd::Begin) => Ok(InterlockState::Inside),
            (InterlockState::Inside, InterlockEnd::End) => Ok(InterlockState::After),
            (_, InterlockEnd::Begin) => Err("a fragment begins a second interlock section"),
            (_, InterlockEnd::End) => Err("a fragment ends an interlock section that it has not begun"),
        }
    }
}

/// Returns the semantics of an interlock instruction.
///
/// It orders buffers and images, and makes nothing available or visible (VK-SW-12, VK-SW-13).
pub fn interlock_semantics(end: InterlockEnd) -> Semantics {
    let order = match end {
        InterlockEnd::Begin => Order::Acquire,
        InterlockEnd::End => Order::Release,
    };
    Semantics { order, classes: StorageClassSet::GLOBAL, ..Semantics::RELAXED }
}
