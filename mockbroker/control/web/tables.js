// What the server knows when it renders the page: error names by code, the operations whose only
// argument is a broker, and the topics that Kafka keeps for itself.

export const tables = JSON.parse(document.getElementById("tables").textContent);

export const isInternal = topic => tables.internalTopics.includes(topic);
