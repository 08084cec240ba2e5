//! Fault injection for the tests of this tool: the worker of a test acts like a broken driver.
//!
//! With `--misbehave HOW:ID`, the parent gives the worker of test ID a marked device selector, and the worker
//! acts when it opens the device. `crash` aborts the process, `hang` never returns, and `lost` reports a lost
//! device. `null:*` accepts devices that execute nothing.

use std::time::Duration;

use plan::DeviceError;

use crate::Failure;

/// The prefix of a marked selector, which is not the name of any device.
const SELECTOR_PREFIX: &str = "misbehave:";

/// The kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InjectedFault {
    Crash,
    Hang,
    Lost,
    Null,
}

const FAULT_NAMES: [(&str, InjectedFault); 4] = [
    ("crash", InjectedFault::Crash),
    ("hang", InjectedFault::Hang),
    ("lost", InjectedFault::Lost),
    ("null", InjectedFault::Null),
];

fn parse_fault(name: &str) -> Option<InjectedFault> {
    FAULT_NAMES.iter().find(|(known, _)| *known == name).map(|(_, how)| *how)
}

/// The injected faults of a run.
#[derive(Clone, Debug, Default)]
pub struct FaultInjection {
    /// A kind of fault and the id of its test; `*` for every test.
    rules: Vec<(String, String)>,
}

impl FaultInjection {
    /// Parses `HOW:ID` arguments.
    ///
    /// # Errors
    /// If one has another form.
    pub fn parse(texts: &[String]) -> Result<FaultInjection, Failure> {
        let rules = texts
            .iter()
            .map(|text| match text.split_once(':') {
                Some((how, id)) if parse_fault(how).is_some() => Ok((how.to_owned(), id.to_owned())),
                _ => Err(Failure::input_message(format!("`--misbehave {text}`: expected HOW:ID"))),
            })
            .collect::<Result<_, _>>()?;
        Ok(FaultInjection { rules })
    }

    /// Returns the selector for the worker of a test.
    pub fn mark_selector(&self, id: &str, selector: &str) -> String {
        match self.rules.iter().find(|(_, test_id)| test_id == id || test_id == "*") {
            Some((how, _)) if parse_fault(how) != Some(InjectedFault::Null) => {
                format!("{SELECTOR_PREFIX}{how}")
            }
            Some(_) | None => selector.to_owned(),
        }
    }

    /// Returns true if devices that execute nothing are accepted.
    pub fn accepts_null_devices(&self) -> bool {
        self.rules.iter().any(|(how, _)| parse_fault(how) == Some(InjectedFault::Null))
    }
}

/// Performs the fault of a marked selector.
///
/// # Errors
/// [`DeviceError::DeviceLost`] if that is the fault.
pub fn inject_fault(selector: &str) -> Result<(), DeviceError> {
    match selector.strip_prefix(SELECTOR_PREFIX).and_then(parse_fault) {
        None | Some(InjectedFault::Null) => Ok(()),
        Some(InjectedFault::Crash) => std::process::abort(),
        Some(InjectedFault::Hang) => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        Some(InjectedFault::Lost) => Err(DeviceError::DeviceLost("a test of this tool")),
    }
}
