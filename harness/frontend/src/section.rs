//! Interlocked sections of fragment shaders: what fragments of one pixel do in them one after the other.
//!
//! The fragments of a grid have one sample each, at one pixel, so that the modes of samples and of shading rates keep apart whom that of
//! pixels does ("Fragment Shader Interlock" of the specification): the primitives of a pixel. A fragment that ends in its section, by
//! `discard`, keeps nobody out any longer and releases nothing.

use litmus::{InterlockEnd, InterlockOrder, Order, Semantics, StorageClass, StorageClassSet};
use rspirv::spirv::{ExecutionMode, Op};

use crate::error::{Problem, unsupported};
use crate::stage::Stage;

/// What the execution modes of an entry point say of its sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sections {
    /// In which order fragments of a pixel execute them.
    pub order: InterlockOrder,
    /// What a reader should know of whom they keep apart.
    pub note: Option<&'static str>,
}

/// Where an invocation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Side {
    /// Before its section.
    #[default]
    Before,
    Inside,
    /// Behind it.
    Behind,
}

const ONE_SAMPLE: &str = "sections are those of samples: one sample of each pixel";
const ONE_PIXEL: &str = "sections are those of shading rates: fragments of one pixel";

impl Sections {
    /// What a mode says of sections; `None` where it is about something else.
    pub fn of(mode: ExecutionMode) -> Option<Sections> {
        let (order, note) = match mode {
            ExecutionMode::PixelInterlockOrderedEXT => (InterlockOrder::Ordered, None),
            ExecutionMode::PixelInterlockUnorderedEXT => (InterlockOrder::Unordered, None),
            ExecutionMode::SampleInterlockOrderedEXT => (InterlockOrder::Ordered, Some(ONE_SAMPLE)),
            ExecutionMode::SampleInterlockUnorderedEXT => (InterlockOrder::Unordered, Some(ONE_SAMPLE)),
            ExecutionMode::ShadingRateInterlockOrderedEXT => (InterlockOrder::Ordered, Some(ONE_PIXEL)),
            ExecutionMode::ShadingRateInterlockUnorderedEXT => (InterlockOrder::Unordered, Some(ONE_PIXEL)),
            _ => return None,
        };
        Some(Sections { order, note })
    }

    /// What is said of them where an end of one stands.
    ///
    /// # Errors
    /// Outside of fragment shaders, and where nothing is said.
    pub fn here(of: Option<Sections>, end: InterlockEnd, stage: Stage) -> Result<Sections, Problem> {
        of.filter(|_| stage == Stage::Fragment).ok_or_else(|| {
            let op = match end {
                InterlockEnd::Begin => Op::BeginInvocationInterlockEXT,
                InterlockEnd::End => Op::EndInvocationInterlockEXT,
            };
            let why = match stage {
                Stage::Fragment => "without an execution mode that says whom a section keeps apart",
                Stage::Compute | Stage::Vertex | Stage::Task | Stage::Mesh => "outside of a fragment shader",
            };
            unsupported(format!("Op{op:?} {why}"))
        })
    }
}

impl Side {
    /// Where an invocation stands behind an end of a section; else what is wrong.
    pub fn past(self, end: InterlockEnd) -> Result<Side, &'static str> {
        match (self, end) {
            (Side::Before, InterlockEnd::Begin) => Ok(Side::Inside),
            (Side::Inside, InterlockEnd::End) => Ok(Side::Behind),
            (_, InterlockEnd::Begin) => Err("a fragment begins an interlocked section once more"),
            (_, InterlockEnd::End) => Err("a fragment ends an interlocked section that it is not in"),
        }
    }
}

/// What an end orders: buffers and images; it makes nothing available or visible (VK-SW-12, VK-SW-13).
pub(crate) fn semantics(end: InterlockEnd) -> Semantics {
    let order = match end {
        InterlockEnd::Begin => Order::Acquire,
        InterlockEnd::End => Order::Release,
    };
    let classes = StorageClassSet::EMPTY.with(StorageClass::Buffer).with(StorageClass::Image);
    Semantics { order, classes, ..Semantics::RELAXED }
}
