//! Settings of the server: the `initializationOptions` of the editor.

use std::time::Duration;

use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EditorSettings {
    /// True if shaders are linted while they are edited.
    pub lint: bool,
    /// True if shaders are checked for races when they are saved.
    pub race: bool,
    /// The time limit of `check`, in seconds.
    pub check_seconds: u64,
    /// The time limit of `race`, in seconds.
    pub race_seconds: u64,
    /// Further arguments of `race`, such as `["--grid", "4"]`.
    pub race_arguments: Vec<String>,
    /// Folders of include files of shaders.
    pub include: Vec<String>,
}

impl Default for EditorSettings {
    fn default() -> EditorSettings {
        EditorSettings {
            lint: true,
            race: true,
            check_seconds: 5,
            race_seconds: 5,
            race_arguments: Vec::new(),
            include: Vec::new(),
        }
    }
}

impl EditorSettings {
    /// Returns the time limit of `check`.
    pub fn check_limit(&self) -> Duration {
        Duration::from_secs(self.check_seconds)
    }

    /// Returns the time limit of `race`.
    pub fn race_limit(&self) -> Duration {
        Duration::from_secs(self.race_seconds)
    }
}
