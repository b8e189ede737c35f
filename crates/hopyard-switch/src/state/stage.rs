//! How far the making or the removal of a switch is.

use std::path::Path;

use aya::maps::{Array, Map, MapData, MapError};

use super::CONFIG;
use crate::error::{Error, Result, file_error};
use crate::layout::{Config, LAYOUT_VERSION, STATE_READY};

/// How far a switch is, which its settings alone say: last of all when it is made, first when it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its making was not finished, or its removal has begun.
    Unfinished,
    /// It is there for use.
    Whole,
    /// It is another version's, with maps of this layout where that can be told.
    Foreign(Option<u32>),
}

pub(crate) fn stage(directory: &Path) -> Result<Stage> {
    let path = directory.join(CONFIG);
    if !path.try_exists().map_err(file_error("look for", &path))? {
        return Ok(Stage::Unfinished);
    }
    let what = || format!("open the map {}", path.display());
    let map = MapData::from_pin(&path)
        .and_then(Map::from_map_data)
        .map_err(Error::bpf(what()))?;
    let config: Array<MapData, Config> = match Array::try_from(map) {
        Ok(config) => config,
        Err(MapError::InvalidValueSize { .. }) => return Ok(Stage::Foreign(None)),
        Err(error) => return Err(Error::bpf(what())(error)),
    };
    let config = config
        .get(&0, 0)
        .map_err(Error::bpf("read the switch's settings"))?;
    Ok(match config {
        // Nothing was written yet.
        Config { version: 0, .. } => Stage::Unfinished,
        Config { version, .. } if version != LAYOUT_VERSION => Stage::Foreign(Some(version)),
        Config { state, .. } if state != STATE_READY => Stage::Unfinished,
        _ => Stage::Whole,
    })
}

impl Stage {
    /// Refuses maps that this version of the program does not understand.
    pub(crate) fn check_layout(self, name: &str) -> Result<()> {
        let Self::Foreign(found) = self else {
            return Ok(());
        };
        Err(Error::OtherLayout {
            name: name.to_owned(),
            found,
            own: LAYOUT_VERSION,
        })
    }
}
