//! Machine code beside the instructions of a test that it comes from, as text.

use crate::wire::{CodegenKernel, MachineCodeLine};

/// What a driver says nothing of without it.
pub const EXTENSION: &str = "VK_KHR_pipeline_executable_properties";

/// A kernel: a line for each line of its code, what it comes from on the left.
pub fn kernel(kernel: &CodegenKernel) -> String {
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

/// A kernel of a record.
pub struct Part {
    /// What it is.
    pub heading: String,
    /// Its code.
    pub text: String,
    /// Whether it is the threads alone, beside the test.
    pub aligned: bool,
}

/// What a record holds: the threads alone beside the test, then the kernels that ran.
pub fn parts(line: &MachineCodeLine) -> Vec<Part> {
    let aligned = line.kernels.iter().map(|one| {
        let how = one.reason.as_deref().map(|how| format!(", {how}")).unwrap_or_default();
        Part {
            heading: format!("{}, the threads alone ({}{how})", one.kernel, one.form),
            text: kernel(one),
            aligned: true,
        }
    });
    let ran = line.ran.iter().map(|form| Part {
        heading: format!("{}, the kernel that ran", form.name),
        text: form.text.clone(),
        aligned: false,
    });
    aligned.chain(ran).collect()
}

/// Why there is no machine code, in words.
pub fn without(why: &str) -> String {
    if why == EXTENSION {
        format!("no machine code: the driver lacks {EXTENSION}")
    } else {
        format!("no machine code: {why}")
    }
}
