//! The instruction of a test that a line of machine code comes from.

use codegen::LineSource;
use litmus::Test;

/// Names the test instruction that a line of machine code comes from.
pub fn source_text(test: &Test, source: LineSource) -> String {
    match source {
        LineSource::Instruction(thread, index) => {
            let column = test.thread(thread);
            let text =
                column.instructions.get(index).map(|instruction| instruction.kind.to_text(test, thread));
            format!("P{}.{index}: {}", column.number, text.unwrap_or_default())
        }
        LineSource::Result(thread) => format!("P{}: results", test.thread(thread).number),
    }
}
