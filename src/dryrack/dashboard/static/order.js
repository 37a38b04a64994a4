// Natural order: node-2 comes before node-10.

/** A name by which texts sort in natural order. Comparing such names is cheap. @param {string} text */
export function naturalKey(text) {
  return text.toLowerCase().replace(/\d+/g, (digits) => digits.replace(/^0+(?=\d)/, "").padStart(12, "0"));
}

/**
 * Returns items in the natural order of a value; items without a value come last, in both directions.
 * @template Item
 * @param {Item[]} items
 * @param {(item: Item) => string | number} value
 * @param {boolean} [isDescending]
 * @returns {Item[]}
 */
export function sortedBy(items, value, isDescending = false) {
  /** @type {Map<string, string>} */
  const keys = new Map();
  const keyOf = (/** @type {string} */ text) => {
    let key = keys.get(text);
    if (key === undefined) keys.set(text, (key = naturalKey(text)));
    return key;
  };
  const sign = isDescending ? -1 : 1;
  const pairs = items.map((item) => {
    const found = value(item);
    return { item, key: typeof found === "number" ? found : keyOf(found) };
  });
  const isEmpty = (/** @type {string | number} */ key) => key === "" || Number.isNaN(key);
  pairs.sort((a, b) => {
    if (a.key === b.key) return 0;
    if (isEmpty(a.key) || isEmpty(b.key)) return Number(isEmpty(a.key)) - Number(isEmpty(b.key));
    return a.key < b.key ? -sign : sign;
  });
  return pairs.map((each) => each.item);
}
