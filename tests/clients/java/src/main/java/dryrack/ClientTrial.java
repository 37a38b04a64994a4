package dryrack;

import io.fabric8.kubernetes.api.model.ContainerBuilder;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.api.model.KubernetesResourceList;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.PodResourceClaimBuilder;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaimBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.MixedOperation;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/**
 * Creates, lists, watches, patches and deletes pods and ResourceClaims, and prints as JSON what
 * each part of the client saw. The kubeconfig is the one that the variable KUBECONFIG names.
 */
public final class ClientTrial {
  private static final String NAMESPACE = "default";
  private static final int SECONDS_MAX = 60;
  private static final int RESYNC_MILLISECONDS = 500;
  private static final int CONFLICT = 409;
  private static final int ATTEMPTS_MAX = 20;

  private ClientTrial() {}

  public static void main(String[] arguments) throws Exception {
    Map<String, Object> report = new TreeMap<>();
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      report.put("version", client.getKubernetesVersion().getGitVersion());
      report.put("http", client.getHttpClient().getClass().getSimpleName());
      report.put("claims", follow(client.resources(ResourceClaim.class), claim("brief")));
      ResourceClaim kept = client.resource(claim("kept")).inNamespace(NAMESPACE).create();
      report.put("pods", follow(client.pods(), pod(kept.getMetadata().getName())));
      Pod pod = client.resource(pod("kept")).inNamespace(NAMESPACE).create();
      Pod ready = client.resource(pod).waitUntilReady(SECONDS_MAX, TimeUnit.SECONDS);
      report.put("ready", ready.getStatus().getPhase());
      client.resource(ready).withGracePeriod(0).delete();
      client.resource(kept).delete();
    }
    System.out.println(Serialization.asJson(report));
  }

  /** Returns what the watch, the informer and the answers said about the life of one object. */
  private static <T extends HasMetadata, L extends KubernetesResourceList<T>, R extends Resource<T>>
      Map<String, Object> follow(MixedOperation<T, L, R> kind, T template) throws Exception {
    Events<T> events = new Events<>();
    Informed<T> informed = new Informed<>();
    Map<String, Object> seen = new TreeMap<>();
    try (Watch watch = kind.inNamespace(NAMESPACE).watch(events);
        SharedIndexInformer<T> informer =
            kind.inNamespace(NAMESPACE).inform(informed, RESYNC_MILLISECONDS)) {
      String name = template.getMetadata().getName();
      kind.inNamespace(NAMESPACE).resource(template).create();
      seen.put("listed", names(kind.inNamespace(NAMESPACE).list().getItems()));
      var object = kind.inNamespace(NAMESPACE).withName(name);
      object.patch(PatchContext.of(PatchType.JSON_MERGE), labels("merged"));
      for (int attempt = 1; ; attempt++) {
        try {
          object.edit(each -> {
            each.getMetadata().getLabels().put("edited", "yes");
            return each;
          });
          break;
        } catch (KubernetesClientException error) {
          // The scheduler and the kubelet write the pod at the same time.
          if (error.getCode() != CONFLICT || attempt == ATTEMPTS_MAX) {
            throw error;
          }
        }
      }
      T applied = Serialization.clone(template);
      applied.getMetadata().setLabels(new TreeMap<>(Map.of("applied", "yes")));
      T stored = kind.inNamespace(NAMESPACE).resource(applied).forceConflicts().serverSideApply();
      seen.put("labels", new TreeSet<>(stored.getMetadata().getLabels().keySet()));
      informed.await(each -> each.equals("resync " + name));
      seen.put("cached", names(informer.getStore().list()));
      object.withGracePeriod(0).delete();
      object.waitUntilCondition(each -> each == null, SECONDS_MAX, TimeUnit.SECONDS);
      events.await(each -> each.equals("DELETED " + name));
      informed.await(each -> each.equals("delete " + name));
      // WatchHTTPManager is what fabric8 falls back to where a WebSocket is refused.
      seen.put("by", watch.getClass().getSimpleName());
      seen.put("watching", informer.isWatching());
      seen.put("left", names(informer.getStore().list()));
    }
    seen.put("watched", events.distinct());
    seen.put("informed", informed.distinct());
    seen.put("problems", events.problems);
    return seen;
  }

  private static String labels(String name) {
    return "{\"metadata\":{\"labels\":{\"" + name + "\":\"yes\"}}}";
  }

  private static Set<String> names(List<? extends HasMetadata> items) {
    Set<String> names = new TreeSet<>();
    items.forEach(each -> names.add(each.getMetadata().getName()));
    return names;
  }

  private static ResourceClaim claim(String name) {
    return new ResourceClaimBuilder()
        .withNewMetadata().withName(name).withNamespace(NAMESPACE).endMetadata()
        .withNewSpec().withNewDevices()
        .addNewRequest().withName("gpu")
        .withNewExactly().withDeviceClassName("gpu.nvidia.com").endExactly()
        .endRequest()
        .endDevices().endSpec()
        .build();
  }

  private static Pod pod(String claim) {
    return new PodBuilder()
        .withNewMetadata().withName("trainer").withNamespace(NAMESPACE).endMetadata()
        .withNewSpec()
        .withContainers(new ContainerBuilder().withName("main").withImage("image").build())
        .withResourceClaims(
            new PodResourceClaimBuilder().withName("gpu").withResourceClaimName(claim).build())
        .endSpec()
        .build();
  }

  /** Lines that arrive in other threads, and whoever waits for one. */
  private static class Lines {
    private final List<String> lines = new ArrayList<>();
    private final List<Map.Entry<Predicate<String>, CompletableFuture<Void>>> waiting =
        new ArrayList<>();

    synchronized void add(String line) {
      lines.add(line);
      waiting.stream().filter(e -> e.getKey().test(line)).forEach(e -> e.getValue().complete(null));
    }

    void await(Predicate<String> wanted) throws Exception {
      CompletableFuture<Void> future = new CompletableFuture<>();
      synchronized (this) {
        waiting.add(Map.entry(wanted, future));
        if (lines.stream().anyMatch(wanted)) {
          future.complete(null);
        }
      }
      future.get(SECONDS_MAX, TimeUnit.SECONDS);
    }

    synchronized Set<String> distinct() {
      return new TreeSet<>(lines);
    }
  }

  private static final class Events<T extends HasMetadata> extends Lines implements Watcher<T> {
    private final List<String> problems = new ArrayList<>();

    @Override
    public void eventReceived(Action action, T resource) {
      add(action + " " + resource.getMetadata().getName());
    }

    @Override
    public void onClose(WatcherException cause) {
      problems.add(String.valueOf(cause));
    }
  }

  private static final class Informed<T extends HasMetadata> extends Lines
      implements ResourceEventHandler<T> {
    @Override
    public void onAdd(T object) {
      add("add " + object.getMetadata().getName());
    }

    @Override
    public void onUpdate(T before, T after) {
      String version = after.getMetadata().getResourceVersion();
      boolean isSame = version.equals(before.getMetadata().getResourceVersion());
      add((isSame ? "resync " : "update ") + after.getMetadata().getName());
    }

    @Override
    public void onDelete(T object, boolean isUnknown) {
      add("delete " + object.getMetadata().getName());
    }
  }
}
