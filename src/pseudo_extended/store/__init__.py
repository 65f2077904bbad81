"""A run on disk: draws as zarr arrays, snapshots to go on from, a manifest, a lock. No pickle anywhere."""

from pseudo_extended.store.arrays import Arrays as Arrays
from pseudo_extended.store.arrays import Column as Column
from pseudo_extended.store.arrays import Layout as Layout
from pseudo_extended.store.codec import NotStoredError as NotStoredError
from pseudo_extended.store.codec import decode as decode
from pseudo_extended.store.codec import differences as differences
from pseudo_extended.store.codec import encode as encode
from pseudo_extended.store.codec import holds_functions as holds_functions
from pseudo_extended.store.files import BrokenFileError as BrokenFileError
from pseudo_extended.store.fingerprint import fingerprint_function as fingerprint_function
from pseudo_extended.store.fingerprint import fingerprint_target as fingerprint_target
from pseudo_extended.store.fingerprint import fingerprint_versions as fingerprint_versions
from pseudo_extended.store.fingerprint import machine as machine
from pseudo_extended.store.lock import StoreInUseError as StoreInUseError
from pseudo_extended.store.manifest import StoreVersionError as StoreVersionError
from pseudo_extended.store.resampled import constrainer as constrainer
from pseudo_extended.store.resampled import resample_particles as resample_particles
from pseudo_extended.store.store import Store as Store
from pseudo_extended.store.store import StoreError as StoreError
from pseudo_extended.store.writer import DrawWriter as DrawWriter
from pseudo_extended.store.writer import Values as Values
