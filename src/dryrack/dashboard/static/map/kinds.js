// Drivers of devices that accompany accelerators: network interfaces, CPUs, and the like. There are
// many more of them than of accelerators, so the map shows them as a strip until you open them.

/** Words in the names of such drivers: dra.net, dra.cpu, nic.example.com, compute-domain.nvidia.com. */
const WORDS = new Set([
  ...["net", "network", "nic", "nics", "rdma", "efa", "sriov", "cpu", "cpus"],
  ...["memory", "storage", "imex", "compute-domain"],
]);

/** @param {string} driver */
function isAuxiliary(driver) {
  const labels = driver.split(".");
  // The last label is a top-level domain such as .net, but not in dra.net.
  const names = labels[0] === "dra" ? labels : labels.slice(0, -1);
  return names.some((name) => WORDS.has(name) || name.split("-").some((word) => WORDS.has(word)));
}

/**
 * Returns the drivers that the map shows as a strip; none if the fleet has no others.
 * @param {Iterable<string>} drivers @returns {string[]}
 */
export function auxiliaryDrivers(drivers) {
  const all = [...drivers].sort();
  const found = all.filter(isAuxiliary);
  return found.length < all.length ? found : [];
}
