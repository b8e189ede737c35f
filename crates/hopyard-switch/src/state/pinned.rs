//! Opening the maps of a switch by their files.

use std::path::Path;

use aya::maps::{HashMap, Map, MapData};

use crate::error::{Error, Result};

/// A pinned map as the kind that it is.
pub(crate) fn pinned<T: TryFrom<Map>>(directory: &Path, name: &str) -> Result<T>
where
    T::Error: std::error::Error + Send + Sync + 'static,
{
    let path = directory.join(name);
    let what = format!("open the map {}", path.display());
    let map = MapData::from_pin(&path)
        .and_then(Map::from_map_data)
        .map_err(Error::bpf(what.clone()))?;
    T::try_from(map).map_err(Error::bpf(what))
}

/// What the kernel keeps of a device in a map of devices (`struct bpf_devmap_val`): its index, and that of a program; 0: none.
pub(super) type Device = [u32; 2];

/// Opened as a plain hash map: for a map of devices aya first loads test programs to see what the kernel supports, which takes half
/// a millisecond.
pub(super) fn devices(directory: &Path) -> Result<HashMap<MapData, u32, Device>> {
    let path = directory.join("devices");
    let what = format!("open the map {}", path.display());
    let map = MapData::from_pin(&path).map_err(Error::bpf(what.clone()))?;
    HashMap::try_from(Map::HashMap(map)).map_err(Error::bpf(what))
}

/// The number of the map in a file.
pub(super) fn id(path: &Path) -> Result<u32> {
    let info = MapData::from_pin(path).and_then(|map| map.info());
    let info = info.map_err(Error::bpf(format!("open the map {}", path.display())))?;
    Ok(info.id())
}
