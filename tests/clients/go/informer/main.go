// Informer keeps a cache of ConfigMaps with client-go's own informers. When its standard input
// ends it waits until the cache has seen the revision named there, and prints what it holds.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 60 * time.Second

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.Start(stop)
	if !cache.WaitForCacheSync(stop, informer.HasSynced) {
		return fmt.Errorf("the cache did not sync")
	}
	fmt.Println("synced")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return err
	}
	wanted, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return err
	}
	if err := waitFor(informer, wanted); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(held(informer))
}

func waitFor(informer cache.SharedIndexInformer, wanted uint64) error {
	deadline := time.Now().Add(patience)
	for {
		seen, _ := strconv.ParseUint(informer.LastSyncResourceVersion(), 10, 64)
		if seen >= wanted {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("at revision %d, and not at %d", seen, wanted)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func held(informer cache.SharedIndexInformer) map[string]string {
	found := map[string]string{}
	for _, object := range informer.GetStore().List() {
		configMap := object.(*corev1.ConfigMap)
		found[configMap.Namespace+"/"+configMap.Name] = configMap.ResourceVersion
	}
	return found
}
