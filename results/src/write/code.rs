//! Machine code as text, next to the test instructions that it implements.

use crate::wire::{CodegenKernel, MachineCodeLine};

/// The extension through which drivers report compiled code.
pub const EXECUTABLE_PROPERTIES_EXTENSION: &str = "VK_KHR_pipeline_executable_properties";

/// Formats a kernel: one line per machine instruction, with its source instruction on the left.
pub fn format_kernel(kernel: &CodegenKernel) -> String {
    let mut text = String::new();
    if let Some(why) = &kernel.not_disassembled {
        text += &format!("  {why}\n");
    }
    let width =
        kernel.code.iter().filter_map(|line| Some(line.source.as_ref()?.chars().count())).max().unwrap_or(0);
    for code in &kernel.code {
        let indent = if code.text.ends_with(':') { "" } else { "  " };
        let source = code.source.as_deref().unwrap_or("");
        let words =
            if code.words.is_empty() { String::new() } else { format!("  ; {}", code.words.join("; ")) };
        text += format!("{source:width$} | {indent}{}{words}", code.text).trim_end();
        text.push('\n');
    }
    text
}

/// A section on one kernel.
pub struct CodeSection {
    /// The heading.
    pub heading: String,
    /// The code.
    pub text: String,
    /// Whether the kernel has only the threads of the test and each line its source instruction.
    pub is_aligned: bool,
}

/// Returns the sections of a record: the transformations that its violation needs, the kernels with only the
/// threads of the test, and those that ran.
pub fn code_sections(line: &MachineCodeLine) -> Vec<CodeSection> {
    let needed = line.transformations.iter().map(|needed| CodeSection {
        heading: "the transformations that the violation needs".to_owned(),
        text: format!("{}\nagain: {}\n", needed.names.join("\n"), needed.replay),
        is_aligned: true,
    });
    let aligned = line.kernels.iter().map(|one| {
        let how = one.reason.as_deref().map(|how| format!(", {how}")).unwrap_or_default();
        CodeSection {
            heading: format!("{}, the threads alone ({}{how})", one.kernel, one.form),
            text: format_kernel(one),
            is_aligned: true,
        }
    });
    let ran = line.ran.iter().map(|form| CodeSection {
        heading: format!("{}, the kernel that ran", form.name),
        text: form.text.clone(),
        is_aligned: false,
    });
    needed.chain(aligned).chain(ran).collect()
}

/// Formats the reason why there is no machine code.
pub fn format_no_code_reason(why: &str) -> String {
    if why == EXECUTABLE_PROPERTIES_EXTENSION {
        format!("no machine code: the driver lacks {EXECUTABLE_PROPERTIES_EXTENSION}")
    } else {
        format!("no machine code: {why}")
    }
}
